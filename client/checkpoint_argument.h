// What people give as CHECKPOINT: a path, or JOB[@STEP].
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/session.h"

namespace muster {

// A path that exists is taken as it is. Else the coordinator is asked for the job's newest checkpoint, or that of STEP,
// and the answer is below `checkpoint_root`. NOT_FOUND says what was looked for and which flag names another root.
absl::StatusOr<std::string> ResolveCheckpoint(Session& session, const std::string& argument,
                                              const std::string& checkpoint_root);

}  // namespace muster
