#include "server/job/liveness.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_join.h"
#include "server/job/gang.h"

namespace muster {
namespace {

// No worker of the gang was heard for as long as its agents would wait before they kill their ranks.
bool FencePassed(const JobEntry& entry, const WorkerRegistry& registry) {
  absl::Duration shortest = absl::InfiniteDuration();
  for (const server::RankRecord& rank : entry.record.ranks()) {
    shortest = std::min(shortest, registry.SilentFor(rank.worker()));
  }
  return shortest > registry.leases().fence_after;
}

}  // namespace

bool IsGangDead(const JobEntry& entry, const WorkerRegistry& registry) {
  std::vector<GangMember> members;
  for (const server::RankRecord& rank : entry.record.ranks()) {
    members.push_back({rank.dead(), registry.IsReachable(rank.worker())});
  }
  return GangIsDead(members, FencePassed(entry, registry));
}

std::string LostWorkers(const JobEntry& entry, const WorkerRegistry& registry, absl::Duration now) {
  std::set<std::string> lost;
  bool any_reachable = false;
  for (const server::RankRecord& rank : entry.record.ranks()) {
    if (rank.dead()) continue;
    if (registry.IsReachable(rank.worker())) {
      any_reachable = true;
    } else {
      lost.insert(rank.worker());
    }
  }
  if (lost.empty()) return "";
  // Perhaps it is the coordinator that is cut off, and they train: nothing new may start before the fence anyway.
  if (!any_reachable) return FencePassed(entry, registry) ? absl::StrJoin(lost, ", ") : "";

  // Three steps that ended after a worker's last word are two that began after it: the gang moves in lock step, so it
  // lives. A gang of slow steps gets the time of four of them to show that.
  const absl::Duration patience = std::max(registry.leases().lease, absl::Seconds(4 * entry.progress.step_seconds()));
  for (const std::string& name : lost) {
    const absl::Duration last_word = now - registry.SilentFor(name);
    const bool proven = entry.newest_steps[2] > last_word;
    const absl::Duration newest_sign = proven ? entry.newest_steps[0] : last_word;
    if (now - newest_sign > patience) return absl::StrJoin(lost, ", ");
  }
  return "";
}

}  // namespace muster
