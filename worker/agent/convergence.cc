#include "worker/agent/convergence.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

using Kind = ConvergenceStep::Kind;

// The newest desired attempt of each job.
std::map<std::string, int64_t> NewestAttempts(const v1::Desired& desired) {
  std::map<std::string, int64_t> newest;
  for (const v1::Assignment& assignment : desired.assignments()) {
    int64_t& attempt = newest[assignment.job_id()];
    attempt = std::max(attempt, assignment.attempt());
  }
  return newest;
}

void StopUndesired(const v1::Desired& desired, const std::map<RankKey, LocalRank>& local,
                   std::vector<ConvergenceStep>& steps) {
  std::set<RankKey> wanted;
  for (const v1::Assignment& assignment : desired.assignments()) wanted.insert(RankKey::Of(assignment));
  const std::map<std::string, int64_t> newest = NewestAttempts(desired);
  for (const auto& [key, rank] : local) {
    if (rank.ended || rank.asked_to_die || wanted.count(key) > 0) continue;
    const auto found = newest.find(key.job_id);
    if (found != newest.end() && found->second > key.attempt) {
      // Its work is given to others: a checkpoint of it would be dead on arrival.
      steps.push_back({Kind::kKill, key, absl::StrCat("attempt ", found->second, " took its place")});
    } else if (!rank.asked_to_stop) {
      steps.push_back({Kind::kStop, key, "the coordinator does not want it any more"});
    }
  }
}

}  // namespace

std::vector<ConvergenceStep> Converge(const v1::Desired& desired, const std::map<RankKey, LocalRank>& local) {
  std::vector<ConvergenceStep> steps;
  StopUndesired(desired, local, steps);
  std::set<int64_t> busy;
  for (const auto& [key, rank] : local) {
    if (!rank.ended) busy.insert(rank.device);
  }
  for (const v1::Assignment& assignment : desired.assignments()) {
    const RankKey key = RankKey::Of(assignment);
    const auto found = local.find(key);
    const bool known = found != local.end();
    if (known && found->second.ended) continue;
    switch (assignment.action()) {
      case v1::STOP:
        if (!known) {
          steps.push_back({Kind::kReportAbsent, key, ""});
        } else if (!found->second.asked_to_stop && !found->second.asked_to_die) {
          steps.push_back({Kind::kStop, key, "the coordinator asked it to stop"});
        }
        break;
      case v1::KILL:
        if (!known) {
          steps.push_back({Kind::kReportAbsent, key, ""});
        } else if (!found->second.asked_to_die) {
          steps.push_back({Kind::kKill, key, "the coordinator ended this attempt"});
        }
        break;
      default:
        if (!known && busy.insert(assignment.device()).second) steps.push_back({Kind::kStart, key, ""});
    }
  }
  return steps;
}

}  // namespace muster
