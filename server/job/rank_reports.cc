#include "server/job/rank_reports.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/format_seconds.h"
#include "common/rpc/proto_time.h"
#include "server/cluster/checkpoint_lineage.h"
#include "server/job/attempt.h"
#include "server/job/forks.h"

namespace muster {
namespace {

// The next attempt's first step after a failure: how long training stood still, and what the failure undid.
void EndStandstill(int64_t step, absl::Time now, JobTable& table, JobEntry& entry) {
  const absl::Duration stood_still = now - FromProto(entry.record.still_since());
  *entry.record.mutable_job()->mutable_last_recovery() = ToProto(stood_still);
  std::string message =
      absl::StrCat("training again after ", FormatSeconds(absl::ToDoubleSeconds(stood_still)), " at step ", step);
  const int64_t reached = entry.record.still_at_step();
  const int64_t undone = reached - entry.record.resumed_from().step();
  if (undone > 0) {
    absl::StrAppend(&message, "; step ", reached, " had been reached, so ", undone,
                    undone == 1 ? " step is" : " steps are", " done again");
  }
  entry.record.clear_still_since();
  entry.record.clear_still_at_step();
  table.AddEvent(entry, v1::INFO, "TRAINING_AGAIN", message);
}

ReportEffect TakeStep(const v1::RankReport& report, const Clock& clock, JobTable& table, JobEntry& entry) {
  v1::Job* job = entry.record.mutable_job();
  if (report.step().step() > entry.progress.furthest_step()) {
    std::rotate(entry.newest_steps.begin(), entry.newest_steps.end() - 1, entry.newest_steps.end());
    entry.newest_steps[0] = clock.SinceBoot();
  }
  entry.progress.OnStep(report.rank(), report.step(), clock.Now(), job);
  bool changed = false;
  if (entry.state() == v1::STARTING) {
    table.Transition(entry, JobEvent::kTraining, "TRAINING", absl::StrCat("trains on ", Places(entry.record)));
    changed = true;
  }
  *entry.record.mutable_newest_step_at() = ToProto(clock.Now());
  if (entry.record.has_still_since() && entry.state() == v1::RUNNING) {
    EndStandstill(report.step().step(), clock.Now(), table, entry);
    changed = true;
  }
  return changed ? ReportEffect::kChanged : ReportEffect::kTouched;
}

ReportEffect TakeCheckpoint(const v1::RankReport& report, const Clock& clock, JobTable& table, JobEntry& entry) {
  v1::Checkpoint checkpoint = report.checkpoint();
  checkpoint.set_attempt(entry.attempt());
  if (!checkpoint.has_written_at()) *checkpoint.mutable_written_at() = ToProto(clock.Now());
  Checkpoints* known = entry.record.mutable_checkpoints();
  if (RecordCheckpoint(checkpoint, known)) {
    table.AddEvent(entry, v1::INFO, "CHECKPOINT_WRITTEN",
                   absl::StrCat("checkpoint of step ", checkpoint.step(), " written to ", checkpoint.path()));
    const int64_t keep = entry.record.job().resolved_spec().checkpoint().keep();
    std::set<std::string> in_use = NeededByForks(table);
    in_use.insert(entry.record.resumed_from().path());
    for (std::string& path : TrimCheckpoints(keep, in_use, known)) {
      entry.record.add_delete_checkpoints(std::move(path));
    }
  }
  *entry.record.mutable_job()->mutable_last_checkpoint() = ResumePoint(*known, 0);
  return ReportEffect::kChanged;
}

// What the engine has to say, as an event of the job.
ReportEffect TakeEvent(const std::string& worker, const v1::Event& event, JobTable& table, JobEntry& entry) {
  const bool of_one_rank = event.rank() >= 0;
  table.AddEvent(entry, event.severity(), event.type(), event.message(), of_one_rank ? worker : "", event.rank());
  *entry.new_events.back().mutable_details() = event.details();
  return ReportEffect::kChanged;
}

}  // namespace

ReportEffect TakeReport(const std::string& worker, const v1::RankReport& report, const Clock& clock, JobTable& table,
                        JobEntry& entry) {
  if (entry.attempt() != report.attempt()) return ReportEffect::kNone;
  if (report.rank() < 0 || report.rank() >= entry.record.ranks_size()) return ReportEffect::kNone;
  server::RankRecord* rank = entry.record.mutable_ranks(static_cast<int>(report.rank()));
  if (rank->worker() != worker || report.sequence() <= rank->last_sequence()) return ReportEffect::kNone;
  rank->set_last_sequence(report.sequence());
  v1::Job* job = entry.record.mutable_job();
  switch (report.report_case()) {
    case v1::RankReport::kStarted:
      entry.progress.OnStarted(report.rank(), report.started(), job);
      return ReportEffect::kTouched;
    case v1::RankReport::kStep:
      return TakeStep(report, clock, table, entry);
    case v1::RankReport::kValidation:
      if (!entry.progress.OnValidation(report.validation(), job)) return ReportEffect::kNone;
      table.AddEvent(entry, v1::INFO, "VALIDATION",
                     absl::StrCat("validation loss ", report.validation().loss(), ", perplexity ",
                                  report.validation().perplexity(), ", after step ", report.validation().step()));
      return ReportEffect::kChanged;
    case v1::RankReport::kCheckpoint:
      return TakeCheckpoint(report, clock, table, entry);
    case v1::RankReport::kEvent:
      return TakeEvent(worker, report.event(), table, entry);
    default:
      return ReportEffect::kNone;  // its end comes with the exit
  }
}

}  // namespace muster
