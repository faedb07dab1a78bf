// Whether the gang of a job lives, by what its workers say and by what they no longer say.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "server/cluster/worker_registry.h"
#include "server/job/job_entry.h"

namespace muster {

// By the rule of gang.h, now.
bool IsGangDead(const JobEntry& entry, const WorkerRegistry& registry);

// The workers of the gang that are lost, when nothing shows that it goes on without their word: "worker-0, worker-3".
// Empty while there is no reason to give it up.
std::string LostWorkers(const JobEntry& entry, const WorkerRegistry& registry, absl::Duration now);

}  // namespace muster
