#include "server/job/page_token.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/rpc/grpc_status.h"

namespace muster {
namespace {

constexpr int64_t kDefaultPage = 100;
constexpr int64_t kLargestPage = 1000;

}  // namespace

std::string MakePageToken(absl::string_view call, int64_t last) {
  return absl::WebSafeBase64Escape(absl::StrCat(call, ":", last));
}

absl::StatusOr<int64_t> ReadPageToken(absl::string_view call, const std::string& token) {
  if (token.empty()) return 0;
  std::string plain;
  int64_t last = 0;
  if (absl::WebSafeBase64Unescape(token, &plain)) {
    absl::string_view rest = plain;
    if (absl::ConsumePrefix(&rest, absl::StrCat(call, ":")) && absl::SimpleAtoi(rest, &last) && last > 0) return last;
  }
  return ErrorWithInfo(absl::StatusCode::kInvalidArgument, "INVALID_PAGE_TOKEN",
                       absl::StrCat("page_token is not one that ", call, " gave"), {{"page_token", token}});
}

absl::StatusOr<int64_t> PageSize(int32_t asked) {
  if (asked < 0) {
    google::rpc::BadRequest::FieldViolation violation;
    violation.set_field("page_size");
    violation.set_description(absl::StrCat(asked, " is below 0"));
    return BadRequestError({violation});
  }
  return asked == 0 ? kDefaultPage : std::min<int64_t>(asked, kLargestPage);
}

}  // namespace muster
