#include "client/exit_code.h"

namespace muster {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return ExitCode::kUsage;
    case absl::StatusCode::kNotFound:
      return ExitCode::kNotFound;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return ExitCode::kNotAllowed;
    case absl::StatusCode::kUnavailable:
      return ExitCode::kUnavailable;
    case absl::StatusCode::kDeadlineExceeded:
      return ExitCode::kTimedOut;
    default:
      return ExitCode::kFailed;
  }
}

}  // namespace muster
