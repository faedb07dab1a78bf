// One field of a job, written as on a command line: "training.optimizer.adamw.lr=1e-4".
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/v1/job.pb.h"

namespace muster {

// Sets a field by its path in a job file, to a value that is read as one in a job file is; a list or map is replaced.
// Returns the field's path in the schema, for a FieldMask. INVALID_ARGUMENT for a path that is none or a value that
// does not fit.
absl::StatusOr<std::string> SetField(absl::string_view assignment, v1::JobSpec* spec);

}  // namespace muster
