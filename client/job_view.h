// Jobs and workers as text for people. Pure.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "client/terminal.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/job.pb.h"

namespace muster {

std::string JobsTable(const v1::ListJobsResponse& jobs, absl::Time now, const Palette& palette);
std::string WorkersTable(const v1::ListWorkersResponse& workers, absl::Time now, const Palette& palette);

// `muster describe job`: state first, why, progress, ranks with planned and actual memory, checkpoint, events.
std::string JobDescription(const v1::Job& job, const v1::ListEventsResponse& events, absl::Time now,
                           const Palette& palette);

// How a job ended, in a few lines: what `submit --wait` and `--watch` end with.
std::string JobSummary(const v1::Job& job, const Palette& palette);

}  // namespace muster
