#include "server/job/attempt.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/rpc/proto_time.h"
#include "server/cluster/checkpoint_lineage.h"
#include "server/job/rewind.h"

namespace muster {
namespace {

// Attempts whose places are remembered, for their logs.
constexpr int kAttemptsRemembered = 32;

}  // namespace

v1::Checkpoint ResumePointOf(const server::JobRecord& record, int64_t at_most_step) {
  v1::Checkpoint checkpoint = ResumePoint(record.checkpoints(), at_most_step);
  if (checkpoint.path().empty() && record.job().has_forked_from()) {
    checkpoint.set_step(record.job().forked_from().step());
    checkpoint.set_path(record.job().forked_from().path());
  }
  return checkpoint;
}

std::string PrepareAttempt(const std::vector<DeviceChoice>& choices, const std::set<std::string>& needed,
                           absl::Time now, server::JobRecord* record) {
  v1::Job* job = record->mutable_job();
  const std::string before = job->attempt() > 0 && !record->failure_message().empty()
                                 ? absl::StrCat(record->failure_message(), "; attempt ", job->attempt(), " -> ")
                                 : "attempt ";
  job->set_attempt(job->attempt() + 1);
  job->clear_placements();
  record->clear_ranks();
  for (size_t i = 0; i < choices.size(); ++i) {
    server::RankRecord* rank = record->add_ranks();
    rank->set_rank(static_cast<int64_t>(i));
    rank->set_worker(choices[i].worker);
    rank->set_device(choices[i].device);
    rank->set_action(v1::RUN);
    v1::RankPlacement* placement = job->add_placements();
    placement->set_rank(rank->rank());
    placement->set_worker(rank->worker());
    placement->set_device(rank->device());
  }
  server::AttemptRecord* attempt = record->add_attempts();
  attempt->set_attempt(job->attempt());
  *attempt->mutable_placements() = job->placements();
  *attempt->mutable_started_at() = ToProto(now);
  if (record->attempts_size() > kAttemptsRemembered) record->mutable_attempts()->DeleteSubrange(0, 1);

  TakeUpRewind(job->attempt() - 1, record);
  *record->mutable_resumed_from() = ResumePointOf(*record, record->resume_from_step());
  record->clear_resume_from_step();
  CutLineage(record->resumed_from(), record->mutable_checkpoints());
  record->clear_delete_checkpoints();
  const int64_t keep = job->resolved_spec().checkpoint().keep();
  std::set<std::string> in_use = needed;
  in_use.insert(record->resumed_from().path());
  for (std::string& path : TrimCheckpoints(keep, in_use, record->mutable_checkpoints())) {
    record->add_delete_checkpoints(std::move(path));
  }
  record->clear_failure_cause();
  record->clear_failure_message();
  record->clear_planned_restart();
  record->clear_profile();
  if (record->has_next_profile()) record->mutable_profile()->Swap(record->mutable_next_profile());
  record->clear_next_profile();
  record->clear_newest_step_at();
  record->clear_silent_workers();
  return absl::StrCat(before, job->attempt(), " on ", Places(*record), ", from ",
                      record->resumed_from().path().empty()
                          ? "the beginning"
                          : absl::StrCat("the checkpoint of step ", record->resumed_from().step()));
}

bool OrderRanks(v1::AssignmentAction action, server::JobRecord* record) {
  bool changed = false;
  for (server::RankRecord& rank : *record->mutable_ranks()) {
    if (rank.dead() || rank.action() == action) continue;
    rank.set_action(action);
    changed = true;
  }
  return changed;
}

bool AllCompleted(const server::JobRecord& record) {
  return record.ranks_size() > 0 && std::all_of(record.ranks().begin(), record.ranks().end(), [](const auto& rank) {
           return rank.dead() && rank.exit().kind() == v1::EXIT_COMPLETED;
         });
}

bool AllEndedWell(const server::JobRecord& record) {
  return std::all_of(record.ranks().begin(), record.ranks().end(), [](const auto& rank) {
    return !rank.dead() || rank.exit().kind() == v1::EXIT_COMPLETED || rank.exit().kind() == v1::EXIT_STOPPED;
  });
}

bool AnyEndedEarly(const server::JobRecord& record) {
  return std::any_of(record.ranks().begin(), record.ranks().end(),
                     [](const auto& rank) { return rank.dead() && rank.exit().kind() != v1::EXIT_COMPLETED; });
}

std::string Places(const server::JobRecord& record) {
  std::map<std::string, int> counts;
  for (const server::RankRecord& rank : record.ranks()) ++counts[rank.worker()];
  return absl::StrJoin(counts, ", ", [](std::string* out, const auto& place) {
    absl::StrAppend(out, place.first, " (", place.second, place.second == 1 ? " rank)" : " ranks)");
  });
}

}  // namespace muster
