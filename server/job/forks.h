// What forks need of the jobs that they were made from.
#pragma once

#include <set>
#include <string>

#include "server/job/job_table.h"

namespace muster {

// Paths of the checkpoints with which jobs begin, or must be able to begin again: those of forks that have not ended
// and have no checkpoint of their own. Called on the coordinator's loop.
std::set<std::string> NeededByForks(const JobTable& table);

}  // namespace muster
