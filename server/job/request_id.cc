#include "server/job/request_id.h"

#include "absl/strings/str_cat.h"
#include "common/rpc/grpc_status.h"

namespace muster {
namespace {

constexpr size_t kCharacters = 64;

}  // namespace

absl::Status CheckRequestId(const std::string& request_id) {
  if (request_id.size() <= kCharacters) return absl::OkStatus();
  return FieldError("request_id", absl::StrCat("has more than ", kCharacters, " characters"));
}

absl::Status RequestIdReusedError(const std::string& request_id, const JobEntry& entry) {
  return ErrorWithInfo(
      absl::StatusCode::kInvalidArgument, "REQUEST_ID_REUSED",
      absl::StrCat("request_id ", request_id, " submitted another spec as ", entry.id(), "; choose a new one"),
      {{"request_id", request_id}, {"job", entry.id()}});
}

}  // namespace muster
