// What people are told of a running job while workers of it are silent. The state of the job changes only when its gang
// is known to be lost (server/job/liveness.h), which may be minutes later.
#pragma once

#include "absl/time/time.h"
#include "server/cluster/worker_registry.h"
#include "server/job/job_table.h"

namespace muster {

// Of each worker of a RUNNING job that lost its lease: a WORKER_LOST event, once, the reason of the job, its ranks
// shown as unreachable. Returns whether there is anything to commit.
bool TellOfSilence(const WorkerRegistry& registry, absl::Time now, JobTable& table, JobEntry& entry);

// Of each worker told of that is heard again: a WORKER_BACK event and, when it was the last, the reason as before.
// Returns whether there is anything to commit. REQUIRES: the job holds devices.
bool TellOfReturn(const WorkerRegistry& registry, JobTable& table, JobEntry& entry);

}  // namespace muster
