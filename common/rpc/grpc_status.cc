#include "common/rpc/grpc_status.h"

#include <grpcpp/grpcpp.h>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/status.pb.h"

namespace muster {
namespace {

constexpr char kTypePrefix[] = "type.googleapis.com/";

template <typename Message>
std::string TypeUrl() {
  return absl::StrCat(kTypePrefix, Message::descriptor()->full_name());
}

template <typename Message>
void SetDetail(absl::Status& status, const Message& detail) {
  status.SetPayload(TypeUrl<Message>(), absl::Cord(detail.SerializeAsString()));
}

template <typename Message>
Message DetailOf(const absl::Status& status) {
  Message detail;
  if (const auto payload = status.GetPayload(TypeUrl<Message>())) detail.ParseFromString(std::string(*payload));
  return detail;
}

google::rpc::ErrorInfo MakeErrorInfo(absl::string_view reason, const std::map<std::string, std::string>& metadata) {
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain("muster");
  info.mutable_metadata()->insert(metadata.begin(), metadata.end());
  return info;
}

}  // namespace

absl::Status ErrorWithInfo(absl::StatusCode code, absl::string_view reason, absl::string_view message,
                           const std::map<std::string, std::string>& metadata) {
  absl::Status status(code, message);
  SetDetail(status, MakeErrorInfo(reason, metadata));
  return status;
}

absl::Status BadRequestError(const std::vector<google::rpc::BadRequest::FieldViolation>& violations) {
  google::rpc::BadRequest bad_request;
  for (const auto& violation : violations) *bad_request.add_field_violations() = violation;
  std::string message = "invalid request";
  std::map<std::string, std::string> metadata;
  if (!violations.empty()) {
    message = absl::StrCat(violations[0].field(), ": ", violations[0].description());
    if (violations.size() > 1) absl::StrAppend(&message, " (and ", violations.size() - 1, " more)");
    metadata["field"] = violations[0].field();
  }
  absl::Status status(absl::StatusCode::kInvalidArgument, message);
  SetDetail(status, MakeErrorInfo("INVALID_FIELD", metadata));
  SetDetail(status, bad_request);
  return status;
}

absl::Status FieldError(absl::string_view field, absl::string_view description) {
  google::rpc::BadRequest::FieldViolation violation;
  violation.set_field(std::string(field));
  violation.set_description(std::string(description));
  return BadRequestError({violation});
}

absl::Status PreconditionError(absl::string_view reason, absl::string_view subject, absl::string_view message,
                               const std::map<std::string, std::string>& metadata) {
  absl::Status status = ErrorWithInfo(absl::StatusCode::kFailedPrecondition, reason, message, metadata);
  google::rpc::PreconditionFailure failure;
  auto* violation = failure.add_violations();
  violation->set_type(std::string(reason));
  violation->set_subject(std::string(subject));
  violation->set_description(std::string(message));
  SetDetail(status, failure);
  return status;
}

google::rpc::ErrorInfo ErrorInfoOf(const absl::Status& status) { return DetailOf<google::rpc::ErrorInfo>(status); }

google::rpc::BadRequest BadRequestOf(const absl::Status& status) { return DetailOf<google::rpc::BadRequest>(status); }

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(std::string(status.message()));
  status.ForEachPayload([&details](absl::string_view type_url, const absl::Cord& payload) {
    auto* detail = details.add_details();
    detail->set_type_url(std::string(type_url));
    detail->set_value(std::string(payload));
  });
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()),
                      details.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status details;
  if (details.ParseFromString(status.error_details())) {
    for (const auto& detail : details.details()) result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return result;
}

}  // namespace muster
