#include "server/job/silence.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/format_seconds.h"
#include "server/job/attempt.h"

namespace muster {
namespace {

constexpr char kUnreachable[] = "unreachable";

std::string ClockTime(absl::Time time) { return absl::FormatTime("%H:%M:%S UTC", time, absl::UTCTimeZone()); }

bool AnyReachable(const JobEntry& entry, const WorkerRegistry& registry) {
  return std::any_of(entry.record.ranks().begin(), entry.record.ranks().end(),
                     [&](const auto& rank) { return !rank.dead() && registry.IsReachable(rank.worker()); });
}

// A rank of it, or its last report, may have changed since.
void ShowUnreachable(const std::string& worker, JobTable& table, JobEntry& entry) {
  for (v1::RankStatus& status : *entry.record.mutable_job()->mutable_ranks()) {
    if (status.worker() != worker || status.state() == "exited" || status.state() == kUnreachable) continue;
    status.set_state(kUnreachable);
    table.Touch(entry);
  }
}

}  // namespace

bool TellOfSilence(const WorkerRegistry& registry, absl::Time now, JobTable& table, JobEntry& entry) {
  std::set<std::string> silent;
  for (const server::RankRecord& rank : entry.record.ranks()) {
    if (!rank.dead() && !registry.IsReachable(rank.worker())) silent.insert(rank.worker());
  }
  if (silent.empty()) return false;
  v1::Job* job = entry.record.mutable_job();
  const bool any_reachable = AnyReachable(entry, registry);
  bool changed = false;
  for (const std::string& worker : silent) {
    ShowUnreachable(worker, table, entry);
    auto* told = entry.record.mutable_silent_workers();
    if (std::find(told->begin(), told->end(), worker) != told->end()) continue;
    *told->Add() = worker;
    const absl::Duration silence = registry.SilentFor(worker);
    const absl::Duration left = std::max(absl::ZeroDuration(), registry.leases().fence_after - silence);
    const std::string goes_on = "; the job goes on while its other ranks do steps";
    table.AddEvent(
        entry, v1::WARNING, "WORKER_LOST",
        absl::StrCat(worker, " has been silent for ", FormatSeconds(absl::ToDoubleSeconds(silence)),
                     any_reachable ? goes_on
                                   : absl::StrCat("; its ranks end by themselves, and may start elsewhere, in ",
                                                  FormatSeconds(absl::ToDoubleSeconds(left)))),
        worker);
    // Times of day, for a reason is read later than it is written.
    job->set_state_reason(absl::StrCat(
        worker, " has been silent since ", ClockTime(now - silence),
        any_reachable
            ? goes_on
            : absl::StrCat("; its ranks end by themselves, and may start elsewhere, at ", ClockTime(now + left))));
    job->set_state_reason_code("WORKER_LOST");
    changed = true;
  }
  if (!any_reachable && job->progress().tokens_per_second() != 0) {
    job->mutable_progress()->set_tokens_per_second(0);
    job->mutable_progress()->clear_remaining();
    changed = true;
  }
  return changed;
}

bool TellOfReturn(const WorkerRegistry& registry, JobTable& table, JobEntry& entry) {
  auto* told = entry.record.mutable_silent_workers();
  bool changed = false;
  for (int i = told->size() - 1; i >= 0; --i) {
    const std::string worker = told->Get(i);
    const WorkerRegistry::Worker* known = registry.Find(worker);
    // After a start of the coordinator a worker counts as reachable before it was heard.
    if (known == nullptr || known->lost || known->session == nullptr) continue;
    told->DeleteSubrange(i, 1);
    table.AddEvent(entry, v1::INFO, "WORKER_BACK", absl::StrCat(worker, " is heard again"), worker);
    changed = true;
  }
  if (!changed || !told->empty() || entry.state() != v1::RUNNING) return changed;
  entry.record.mutable_job()->set_state_reason(absl::StrCat("trains on ", Places(entry.record)));
  entry.record.mutable_job()->set_state_reason_code("TRAINING");
  return true;
}

}  // namespace muster
