// Ranks of an agent that died. They died with it (PR_SET_PDEATHSIG); here that is made sure of through their locks, and
// their ends are found so that the new agent reports them.
//
// Owned by the agent; on the loop, before the first session.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/worker.pb.h"

namespace muster {

struct EarlierRanks {
  std::vector<v1::ObservedRank> ended;  // with their ends
  std::vector<v1::RankReport> reports;  // what these had said, for the coordinator
  std::vector<std::string> living;      // lock files that are still held: ask again soon
};

// Keeps what a rank that ended has said, in its directory, for the agent after this one.
absl::Status KeepReports(const std::string& directory, const std::vector<v1::RankReport>& reports);

// Reads STATE/ranks. A rank whose exit was recorded ends as recorded, any other with its agent.
absl::StatusOr<EarlierRanks> FindEarlierRanks(const std::string& state_dir);

// SIGKILL to the process that holds the lock, by the number it wrote there. For a holder that outlives its agent by
// more than the kernel needs to end it.
void KillLockHolder(const std::string& lock_file);

}  // namespace muster
