// absl::Status inside, grpc::Status at the edge, with the details of google.rpc kept on the way.
//
// An absl::Status carries its details as payloads, one a type, so that the parts that know no gRPC pass them on unseen.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/rpc/error_details.pb.h"

namespace grpc {
class Status;
}

namespace muster {

// `reason` is UPPER_SNAKE_CASE and stable; `metadata` holds every variable of the message. The domain is "muster".
absl::Status ErrorWithInfo(absl::StatusCode code, absl::string_view reason, absl::string_view message,
                           const std::map<std::string, std::string>& metadata = {});

// INVALID_ARGUMENT with ErrorInfo INVALID_FIELD and a BadRequest of all violations; the message names the first.
absl::Status BadRequestError(const std::vector<google::rpc::BadRequest::FieldViolation>& violations);
// The same of one field.
absl::Status FieldError(absl::string_view field, absl::string_view description);

// FAILED_PRECONDITION with a PreconditionFailure: `subject` ("jobs/job-3") is in the wrong state for the call.
absl::Status PreconditionError(absl::string_view reason, absl::string_view subject, absl::string_view message,
                               const std::map<std::string, std::string>& metadata = {});

// What a status carries; empty messages where it carries none.
google::rpc::ErrorInfo ErrorInfoOf(const absl::Status& status);
google::rpc::BadRequest BadRequestOf(const absl::Status& status);

grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace muster
