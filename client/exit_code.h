// What `muster` tells the shell. Documented in `muster --help`.
#pragma once

#include "absl/status/status.h"

namespace muster {

enum class ExitCode : int {
  kOk = 0,
  kFailed = 1,
  kUsage = 2,       // wrong flags, or a job file that cannot be right
  kNotFound = 3,    // no such job or worker
  kNotAllowed = 4,  // in this state, or for this user
  kUnavailable = 5,
  kJobUnsuccessful = 6,  // the job that was waited for ended FAILED or CANCELLED
  kTimedOut = 7,
  kInterrupted = 130,  // Ctrl-C
};

// The exit code of a failed call.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace muster
