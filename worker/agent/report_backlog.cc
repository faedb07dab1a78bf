#include "worker/agent/report_backlog.h"

#include <algorithm>
#include <iterator>

namespace muster {
namespace {

void PushBounded(std::deque<v1::RankReport>& reports, const v1::RankReport& report, size_t limit) {
  reports.push_back(report);
  if (reports.size() <= limit) return;
  // What tells how the rank began is never dropped.
  reports.erase(std::next(reports.begin(), reports.front().has_started() ? 1 : 0));
}

}  // namespace

void ReportBacklog::Add(const v1::RankReport& report, bool sent) {
  Kept& kept = ranks_[RankKey::Of(report)];
  if (!report.has_step()) return PushBounded(kept.others, report, kKeptOthers);
  kept.newest_step = report;
  if (!sent) PushBounded(kept.unsent_steps, report, kKeptSteps);
}

std::vector<v1::RankReport> ReportBacklog::InOrder(const Kept& kept) {
  std::vector<v1::RankReport> reports(kept.others.begin(), kept.others.end());
  reports.insert(reports.end(), kept.unsent_steps.begin(), kept.unsent_steps.end());
  if (kept.unsent_steps.empty() && kept.newest_step.sequence() > 0) reports.push_back(kept.newest_step);
  std::sort(reports.begin(), reports.end(),
            [](const v1::RankReport& a, const v1::RankReport& b) { return a.sequence() < b.sequence(); });
  return reports;
}

std::vector<v1::RankReport> ReportBacklog::TakeForNewSession() {
  std::vector<v1::RankReport> all;
  for (auto& [key, kept] : ranks_) {
    std::vector<v1::RankReport> reports = InOrder(kept);
    kept.unsent_steps.clear();
    std::move(reports.begin(), reports.end(), std::back_inserter(all));
  }
  return all;
}

std::vector<v1::RankReport> ReportBacklog::Of(const RankKey& rank) const {
  const auto kept = ranks_.find(rank);
  return kept == ranks_.end() ? std::vector<v1::RankReport>() : InOrder(kept->second);
}

}  // namespace muster
