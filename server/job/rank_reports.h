// What a rank's report changes of its job.
#pragma once

#include <string>

#include "common/base/clock.h"
#include "muster/v1/worker.pb.h"
#include "server/job/job_table.h"

namespace muster {

enum class ReportEffect {
  kNone,     // of an attempt that is over, or repeated
  kTouched,  // progress, which is not stored
  kChanged,  // to be committed
};

// Called on the coordinator's loop.
ReportEffect TakeReport(const std::string& worker, const v1::RankReport& report, const Clock& clock, JobTable& table,
                        JobEntry& entry);

}  // namespace muster
