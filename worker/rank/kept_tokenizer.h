// Keeps the tokenizer of a job's data beside its checkpoints, so that sampling and export find it wherever the
// checkpoints go.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "muster/v1/job.pb.h"
#include "worker/rank/assignment_config.h"

namespace muster {

// Copies the files of DATASET.tokenizer, of the first training dataset, to CHECKPOINTS/tokenizer (rank 0 calls it once
// an attempt). Nothing for a dataset without one, and for a job without checkpoints.
absl::Status KeepTokenizer(const v1::JobSpec& resolved, const RankRoots& roots, const std::string& checkpoints);

}  // namespace muster
