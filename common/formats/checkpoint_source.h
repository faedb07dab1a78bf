// What people call a checkpoint: its own directory (…/attempt-1/step-200), or that of a job, which means its newest
// good one. Free functions; any thread.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/formats/checkpoint_reader.h"

namespace muster {

struct FoundCheckpoint {
  std::string directory;  // of the checkpoint itself
  CheckpointReader reader;
  std::string passed_over;  // why newer ones were not taken, a line each; empty when there were none
};

// Opens it with all checksums verified. A damaged checkpoint that is named itself is DATA_LOSS; below a job's directory
// the next older one is taken. NOT_FOUND when the path is no checkpoint and has none below it.
absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& path);

}  // namespace muster
