// The job's data, opened and checked before anything else starts: what is missing, truncated or beyond the vocabulary
// ends the rank with the file and the offset, and no group is ever joined.
//
// Owned by the rank for its trainer. Immutable; any thread may read.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "muster/v1/job.pb.h"
#include "worker/data/gpt_sample_source.h"
#include "worker/rank/assignment_config.h"

namespace muster {

struct DataSources {
  std::unique_ptr<GptSampleSource> train;
  std::unique_ptr<GptSampleSource> validation;  // null when the job has none

  int64_t validation_windows() const { return validation == nullptr ? 0 : validation->windows(); }
};

absl::StatusOr<DataSources> OpenData(const v1::JobSpec& resolved, const RankRoots& roots);

}  // namespace muster
