// Runs muster-generate, which computes what a client may not: the engine is not linked into `muster`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

// Starts muster-generate, which lies beside this program, with these arguments and this process's output; returns its
// exit code when it has ended. NOT_FOUND naming the place when it is not there; ABORTED when a signal ended it.
absl::StatusOr<int> RunEngineProgram(const std::vector<std::string>& arguments);

}  // namespace muster
