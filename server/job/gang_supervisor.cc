#include "server/job/gang_supervisor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/format_seconds.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/proto_time.h"
#include "server/cluster/checkpoint_lineage.h"
#include "server/job/attempt.h"
#include "server/job/forks.h"
#include "server/job/liveness.h"
#include "server/job/placement.h"
#include "server/job/rank_exit.h"
#include "server/job/rank_reports.h"
#include "server/job/restart_budget.h"
#include "server/job/rewind.h"
#include "server/job/silence.h"

namespace muster {
namespace {

// Waiting jobs are looked at this often even when nothing seems to have changed.
constexpr absl::Duration kScheduleInterval = absl::Seconds(1);

bool AllTraining(const v1::Job& job) {
  return std::all_of(job.ranks().begin(), job.ranks().end(),
                     [](const v1::RankStatus& rank) { return rank.state() == "training" || rank.state() == "exited"; });
}

RankKey KeyOf(const JobEntry& entry, const server::RankRecord& rank) {
  return {entry.id(), entry.attempt(), rank.rank()};
}

}  // namespace

void GangSupervisor::AdoptRunning() {
  for (const auto& item : table_->jobs()) {
    JobEntry& entry = *item.second;
    const bool any_alive = std::any_of(entry.record.ranks().begin(), entry.record.ranks().end(),
                                       [](const auto& rank) { return !rank.dead(); });
    if (!any_alive) continue;
    // What was read from the store may act at once, and must: an agent that came back before would be told to run
    // nothing.
    Apply(EffectsOf(entry));
    table_->AddEvent(
        entry, v1::INFO, "COORDINATOR_STARTED",
        absl::StrCat("the coordinator was started again; waits for the agents of attempt ", entry.attempt()));
    Save(entry);
  }
  schedule_wanted_ = true;
}

// ---- from workers ---------------------------------------------------------------------------------------------------

void GangSupervisor::OnWorkerChanged(const std::string& name) {
  for (const auto& item : table_->jobs()) {
    const auto& ranks = item.second->record.ranks();
    if (std::any_of(ranks.begin(), ranks.end(), [&](const auto& rank) { return rank.worker() == name; })) {
      Settle(*item.second);
    }
  }
  // Ends that are stored by now, or that nobody waits for. Acknowledged behind the commits just begun, whose callbacks
  // take the rank out of what is desired.
  for (const auto& observed : registry_->Find(name)->observed) {
    if (observed.second.phase() != v1::RANK_EXITED) continue;
    table_->AfterCommits([this, name, key = observed.first](absl::Status committed) {
      if (committed.ok()) registry_->AcknowledgeExit(name, key);
    });
  }
  schedule_wanted_ = true;
}

bool GangSupervisor::OnReport(const std::string& worker, const v1::RankReport& report) {
  JobEntry* entry = table_->Find(report.job_id());
  if (entry == nullptr) return false;
  const ReportEffect effect = TakeReport(worker, report, *clock_, *table_, *entry);
  if (effect == ReportEffect::kTouched) table_->Touch(*entry);
  if (effect == ReportEffect::kChanged) Save(*entry);
  return effect != ReportEffect::kNone;
}

// ---- from users -----------------------------------------------------------------------------------------------------

void GangSupervisor::Request(JobEntry& entry, JobEvent event, const std::string& reason, Reply reply) {
  if (!NextState(entry.state(), event).ok()) {
    reply(WrongStateError(entry.record.job(), absl::StrCat("cannot ", JobEventName(event), " ", entry.id())));
    return;
  }
  table_->Transition(entry, event, event == JobEvent::kCancel ? "CANCELLED_BY_USER" : "ASKED_BY_USER", reason);
  if (entry.state() == v1::CANCELLING) OrderRanks(v1::KILL, &entry.record);
  if (entry.state() == v1::PAUSING) OrderRanks(v1::STOP, &entry.record);
  // Training stands still for the user from here on: that is no recovery.
  if (event == JobEvent::kPause) entry.record.clear_still_since();
  if (event == JobEvent::kResume) *entry.record.mutable_queued_at() = ToProto(clock_->Now());
  SettleStopping(entry);
  Save(entry, table_->ReplyWithView(entry, std::move(reply)));
  schedule_wanted_ = true;
}

absl::AnyInvocable<void(absl::Status)> GangSupervisor::ScheduleAndReply(JobEntry& entry, Reply reply) {
  return [this, replying = table_->ReplyWithView(entry, std::move(reply))](absl::Status committed) mutable {
    if (committed.ok()) Schedule();
    replying(std::move(committed));
  };
}

void GangSupervisor::RestartAttempt(JobEntry& entry, const std::string& reason) {
  entry.record.set_planned_restart(reason);
  OrderRanks(v1::STOP, &entry.record);
  table_->AddEvent(entry, v1::INFO, "RESTART_PLANNED",
                   absl::StrCat(reason, ": attempt ", entry.attempt(), " ends at a checkpoint and another begins"));
}

// ---- by itself ------------------------------------------------------------------------------------------------------

void GangSupervisor::Tick() {
  for (const auto& item : table_->jobs()) {
    JobEntry& entry = *item.second;
    if (HoldsDevices(entry.state())) Settle(entry);
    if (entry.state() == v1::QUEUED) CheckStartDeadline(entry);
  }
  if (schedule_wanted_ || clock_->SinceBoot() >= next_schedule_) Schedule();
}

void GangSupervisor::CheckStartDeadline(JobEntry& entry) {
  const v1::PolicySpec& policy = entry.record.job().resolved_spec().policy();
  if (!policy.has_start_deadline() || entry.attempt() > 0) return;
  const absl::Duration deadline = FromProto(policy.start_deadline());
  if (deadline <= absl::ZeroDuration()) return;
  if (clock_->Now() - FromProto(entry.record.job().submitted_at()) < deadline) return;
  Fail(entry, "START_DEADLINE",
       absl::StrCat("it had not started ", FormatSeconds(absl::ToDoubleSeconds(deadline)), " after it was submitted"));
  Save(entry);
}

void GangSupervisor::Schedule() {
  schedule_wanted_ = false;
  next_schedule_ = clock_->SinceBoot() + kScheduleInterval;
  ScheduleSnapshot snapshot;
  snapshot.waiting = WaitingJobs(*table_, *registry_);
  if (snapshot.waiting.empty()) return;
  snapshot.workers = SnapshotDevices(*table_, *registry_);
  const ::muster::Schedule schedule = MakeSchedule(std::move(snapshot));
  for (const ScheduledGang& gang : schedule.start) {
    JobEntry& entry = *table_->Find(gang.job_id);
    BeginAttempt(entry, gang.ranks);
    Save(entry);
  }
  for (const WaitingStatus& status : schedule.wait) ShowWaiting(status, *table_);
}

void GangSupervisor::Settle(JobEntry& entry) {
  bool changed = HoldsDevices(entry.state()) && TellOfReturn(*registry_, *table_, entry);
  changed = BuryRanks(entry) || changed;
  if (entry.state() == v1::STARTING || entry.state() == v1::RUNNING) changed = SettleTraining(entry) || changed;
  if (entry.state() == v1::RECOVERING) changed = SettleRecovering(entry) || changed;
  changed = SettleStopping(entry) || changed;
  if (entry.state() == v1::RUNNING) changed = TellOfSilence(*registry_, clock_->Now(), *table_, entry) || changed;
  if (!changed) return;
  Save(entry);
  schedule_wanted_ = true;
}

bool GangSupervisor::BuryRanks(JobEntry& entry) {
  bool changed = false;
  for (server::RankRecord& rank : *entry.record.mutable_ranks()) {
    const WorkerRegistry::Worker* worker = registry_->Find(rank.worker());
    if (rank.dead() || worker == nullptr || worker->session == nullptr) continue;
    const auto observed = worker->observed.find(KeyOf(entry, rank));
    if (observed != worker->observed.end()) {
      rank.set_seen(true);
      // What a silent agent said last, over a stream that is still open, is no news.
      if (!worker->lost && entry.progress.OnObserved(observed->second, entry.record.mutable_job()))
        table_->Touch(entry);
      if (observed->second.phase() != v1::RANK_EXITED) continue;
      Bury(entry, rank, &observed->second.exit());
    } else if (rank.seen() || (rank.action() != v1::RUN && entry.commits_under_way == 0 &&
                               registry_->IsGone(rank.worker(), KeyOf(entry, rank)))) {
      Bury(entry, rank, nullptr);
    } else {
      continue;
    }
    changed = true;
  }
  return changed;
}

void GangSupervisor::Bury(JobEntry& entry, server::RankRecord& rank, const v1::RankExit* exit) {
  rank.set_dead(true);
  if (exit != nullptr) *rank.mutable_exit() = *exit;
  if (exit != nullptr && exit->has_rewind()) NoteRewind(exit->rewind(), &entry.record);
  const RankEnd end = DescribeEnd(rank, exit);
  table_->AddEvent(entry, end.expected ? v1::INFO : v1::WARNING, "RANK_EXITED", end.message, rank.worker(),
                   rank.rank());
  if (exit != nullptr && exit->last_lines_size() > 0) {
    (*entry.new_events.back().mutable_details())["last_lines"] = absl::StrJoin(exit->last_lines(), "\n");
  }
  if (v1::Job* job = entry.record.mutable_job(); rank.rank() < job->ranks_size()) {
    job->mutable_ranks(static_cast<int>(rank.rank()))->set_state("exited");
    job->mutable_ranks(static_cast<int>(rank.rank()))->set_exit_reason(end.message);
  }
  if (end.expected) return;
  const server::FailureCause worse = WorseCause(entry.record.failure_cause(), end.cause);
  if (worse == entry.record.failure_cause()) return;  // what came first explains this one
  entry.record.set_failure_cause(worse);
  entry.record.set_failure_message(end.message);
}

bool GangSupervisor::SettleTraining(JobEntry& entry) {
  if (entry.record.failure_cause() == server::USER_ERROR) {
    Fail(entry, "USER_ERROR", entry.record.failure_message());
    return true;
  }
  if (!entry.record.planned_restart().empty() && AllEndedWell(entry.record)) return SettlePlannedRestart(entry);
  if (AllCompleted(entry.record)) {
    table_->Transition(entry, JobEvent::kFinished, "COMPLETED",
                       absl::StrCat("all ", entry.record.job().resolved_spec().training().steps(), " steps are done"));
    return true;
  }
  if (AnyEndedEarly(entry.record) || NoticeLostWorker(entry)) {
    BeginRecovery(entry);
    return true;
  }
  if (entry.state() != v1::STARTING) return false;
  if (AllTraining(entry.record.job())) {
    table_->Transition(entry, JobEvent::kTraining, "TRAINING", absl::StrCat("trains on ", Places(entry.record)));
    return true;
  }
  if (clock_->SinceBoot() - entry.state_since <= options_.start_timeout) return false;
  entry.record.set_failure_cause(WorseCause(entry.record.failure_cause(), server::NOT_STARTED));
  entry.record.set_failure_message(absl::StrCat(
      "not every rank trained ", FormatSeconds(absl::ToDoubleSeconds(options_.start_timeout)), " after it was placed"));
  BeginRecovery(entry);
  return true;
}

// While an attempt ends so that another begins.
bool GangSupervisor::SettlePlannedRestart(JobEntry& entry) {
  const auto& ranks = entry.record.ranks();
  if (!std::all_of(ranks.begin(), ranks.end(), [](const auto& rank) { return rank.dead(); })) {
    if (!NoticeLostWorker(entry)) return false;
  }
  BeginRecovery(entry);
  return true;
}

bool GangSupervisor::NoticeLostWorker(JobEntry& entry) {
  const std::string lost = LostWorkers(entry, *registry_, clock_->SinceBoot());
  if (lost.empty()) return false;
  entry.record.set_failure_cause(WorseCause(entry.record.failure_cause(), server::WORKER_LOST));
  entry.record.set_failure_message(absl::StrCat(lost, " cannot be reached"));
  return true;
}

void GangSupervisor::BeginRecovery(JobEntry& entry) {
  // A second failure before any step is part of the same standstill.
  if (!entry.record.has_still_since()) {
    *entry.record.mutable_still_since() = entry.record.has_newest_step_at()
                                              ? entry.record.newest_step_at()
                                              : entry.record.attempts().rbegin()->started_at();
    entry.record.set_still_at_step(std::max(entry.progress.furthest_step(), entry.record.job().progress().step()));
  }
  const bool planned = entry.record.failure_cause() == server::FAILURE_CAUSE_UNSPECIFIED;
  if (planned) entry.record.set_failure_message(entry.record.planned_restart());
  table_->Transition(entry, JobEvent::kGangFailed,
                     planned ? "RESTART_PLANNED" : server::FailureCause_Name(entry.record.failure_cause()),
                     entry.record.failure_message());
  OrderRanks(v1::KILL, &entry.record);
}

bool GangSupervisor::SettleRecovering(JobEntry& entry) {
  if (entry.record.failure_cause() == server::USER_ERROR) {
    Fail(entry, "USER_ERROR", entry.record.failure_message());
    return true;
  }
  if (!IsGangDead(entry, *registry_)) return false;
  if (entry.record.failure_cause() == server::BAD_CHECKPOINT && !FallBack(entry)) return true;
  if (!MayTryAgain(entry)) return true;
  const std::vector<DeviceChoice> choices = PlaceAgain(entry, *table_, *registry_);
  if (choices.empty()) {
    table_->Transition(entry, JobEvent::kDevicesLost, "WAITING_FOR_DEVICES",
                       absl::StrCat(entry.record.failure_message(), "; not enough devices are left to try again"));
    return true;
  }
  BeginAttempt(entry, choices);
  return true;
}

bool GangSupervisor::MayTryAgain(JobEntry& entry) {
  if (entry.record.failure_cause() == server::FAILURE_CAUSE_UNSPECIFIED) return true;  // nothing failed
  if (entry.record.has_pending_rewind()) {
    if (!RewindsSpent(entry.record)) return true;
    Fail(entry, "REWINDS_SPENT",
         absl::StrCat(entry.record.pending_rewind().reason(), "; does not go back again: policy.max_rewinds is ",
                      entry.record.job().resolved_spec().policy().max_rewinds(), " and all are spent"));
    return false;
  }
  AttemptOutcome outcome;
  outcome.cause = entry.record.failure_cause();
  outcome.furthest_step = entry.record.job().progress().step();
  for (const v1::Checkpoint& checkpoint : entry.record.checkpoints()) {
    outcome.new_checkpoint = outcome.new_checkpoint || checkpoint.attempt() == entry.attempt();
  }
  const int64_t max_restarts = entry.record.job().resolved_spec().policy().max_restarts();
  const RestartDecision decision = CountAndDecide(outcome, max_restarts, entry.record.mutable_budget());
  entry.record.mutable_job()->set_restarts(entry.record.budget().restarts());
  if (decision.retry) return true;
  Fail(entry, decision.code, absl::StrCat(entry.record.failure_message(), "; not tried again: ", decision.reason));
  return false;
}

bool GangSupervisor::FallBack(JobEntry& entry) {
  Checkpoints* checkpoints = entry.record.mutable_checkpoints();
  const v1::Checkpoint bad = entry.record.resumed_from();
  ForgetCheckpoint(bad.path(), checkpoints);
  const v1::Checkpoint older = ResumePointOf(entry.record, 0);
  *entry.record.mutable_job()->mutable_last_checkpoint() = ResumePoint(*checkpoints, 0);
  if (!older.path().empty() && older.path() != bad.path()) {
    table_->AddEvent(entry, v1::WARNING, "CHECKPOINT_BAD",
                     absl::StrCat("the checkpoint of step ", bad.step(), ", ", bad.path(),
                                  ", cannot be read; that of step ", older.step(), " takes its place"));
    return true;
  }
  Fail(entry, "BAD_CHECKPOINT", absl::StrCat(entry.record.failure_message(), "; there is no older checkpoint"));
  return false;
}

bool GangSupervisor::SettleStopping(JobEntry& entry) {
  const v1::JobState state = entry.state();
  if (state != v1::PAUSING && state != v1::PREEMPTING && state != v1::CANCELLING) return false;
  if (state != v1::CANCELLING && entry.record.failure_cause() == server::USER_ERROR) {
    Fail(entry, "USER_ERROR", entry.record.failure_message());
    return true;
  }
  if (state != v1::CANCELLING && AllCompleted(entry.record)) {
    table_->Transition(entry, JobEvent::kFinished, "COMPLETED", "all steps were done before it stopped");
    return true;
  }
  const bool cancelled = state == v1::CANCELLING;
  const std::string reason =
      cancelled ? entry.record.job().state_reason()
      : entry.record.job().has_last_checkpoint()
          ? absl::StrCat("stopped at step ", entry.record.job().last_checkpoint().step(), "'s checkpoint")
          : "stopped before its first checkpoint";
  if (IsGangDead(entry, *registry_)) {
    table_->Transition(entry, JobEvent::kGangDead, cancelled ? "CANCELLED_BY_USER" : "STOPPED", reason);
    return true;
  }
  // One crashed, so the others would wait for it in their next collective.
  const absl::Duration elapsed = clock_->SinceBoot() - entry.state_since;
  const bool broken = entry.record.failure_cause() != server::FAILURE_CAUSE_UNSPECIFIED;
  bool changed = false;
  if (cancelled || broken || elapsed > options_.stop_grace) changed = OrderRanks(v1::KILL, &entry.record);
  const absl::Duration patience = options_.kill_timeout + (cancelled ? absl::ZeroDuration() : options_.stop_grace);
  if (elapsed <= patience) return changed;
  table_->Transition(entry, JobEvent::kTimedOut, "GAVE_UP_WAITING",
                     absl::StrCat(reason, "; not every rank is known to have ended"));
  return true;
}

void GangSupervisor::BeginAttempt(JobEntry& entry, const std::vector<DeviceChoice>& choices) {
  const bool rewinds = entry.record.has_pending_rewind();
  const std::string sentence = PrepareAttempt(choices, NeededByForks(*table_), clock_->Now(), &entry.record);
  if (rewinds) {
    table_->AddEvent(entry, v1::WARNING, RewindEventType(entry.record), RewindSentence(entry.record));
  }
  entry.newest_steps.fill(-absl::InfiniteDuration());
  v1::Job* job = entry.record.mutable_job();
  entry.progress.BeginAttempt(job);
  job->mutable_progress()->set_step(entry.record.resumed_from().step());
  table_->Transition(entry, JobEvent::kPlaced, "PLACED", sentence);
}

void GangSupervisor::Fail(JobEntry& entry, const std::string& code, const std::string& reason) {
  table_->Transition(entry, JobEvent::kFailed, code, reason);
  OrderRanks(v1::KILL, &entry.record);
}

GangSupervisor::Effects GangSupervisor::EffectsOf(const JobEntry& entry) const {
  Effects effects;
  effects.job_id = entry.id();
  effects.attempt = entry.attempt();
  effects.reason = entry.record.job().state_reason();
  const v1::JobState state = entry.state();
  effects.joins = state == v1::STARTING || state == v1::RUNNING || state == v1::PAUSING || state == v1::PREEMPTING;
  std::string address;
  if (entry.record.ranks_size() > 0) {
    const WorkerRegistry::Worker* first = registry_->Find(entry.record.ranks(0).worker());
    if (first != nullptr) address = first->record.inventory().address();
  }
  effects.desired = MakeAssignments(entry.record, address, options_);
  return effects;
}

void GangSupervisor::Apply(Effects effects) {
  if (!effects.joins) {
    rendezvous_->CloseAttempt(effects.job_id, effects.reason);
  } else if (rendezvous_->CurrentAttempt(effects.job_id) != effects.attempt) {
    rendezvous_->OpenAttempt(effects.job_id, effects.attempt);
  }
  registry_->SetDesired(effects.job_id, std::move(effects.desired));
}

void GangSupervisor::Save(JobEntry& entry, absl::AnyInvocable<void(absl::Status)> released) {
  table_->Commit(entry,
                 [this, effects = EffectsOf(entry), released = std::move(released)](absl::Status committed) mutable {
                   if (committed.ok()) Apply(std::move(effects));
                   if (released != nullptr) released(committed);
                 });
}

}  // namespace muster
