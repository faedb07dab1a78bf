// What happens to jobs by itself: attempts are placed and started, ranks are watched, a gang that lost a rank is
// stopped, buried and tried again, and what was asked to stop is seen to do so.
//
// Owned by the coordinator; all calls on its loop. It changes a job in memory, commits it, and only then lets the
// change act: the commit's callback tells the workers what is desired now and opens or closes the attempt's rendezvous.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "server/cluster/rendezvous.h"
#include "server/cluster/worker_registry.h"
#include "server/job/assignment.h"
#include "server/job/job_table.h"
#include "server/scheduler/scheduler.h"

namespace muster {

class GangSupervisor : public WorkerListener {
 public:
  using Reply = absl::AnyInvocable<void(absl::StatusOr<v1::Job>)>;

  GangSupervisor(const Clock* clock, JobTable* table, WorkerRegistry* registry, Rendezvous* rendezvous,
                 GangOptions options)
      : clock_(clock), table_(table), registry_(registry), rendezvous_(rendezvous), options_(options) {}

  // After a start: what was running is desired again, so that agents which come back find their ranks wanted.
  // REQUIRES: table and registry are loaded.
  void AdoptRunning();

  // ---- from workers ----

  void OnWorkerChanged(const std::string& worker) override;
  // False for a report of an attempt that is over, and for one that is repeated.
  bool OnReport(const std::string& worker, const v1::RankReport& report);

  // ---- from users ----

  // Takes the job through `event` (cancel, pause, resume) and replies when that is committed. FAILED_PRECONDITION
  // naming the state when the job does not take it.
  void Request(JobEntry& entry, JobEvent event, const std::string& reason, Reply reply);

  // Ends the attempt at a checkpoint and begins another, charged to no budget. REQUIRES: STARTING or RUNNING, and that
  // the caller saves the entry.
  void RestartAttempt(JobEntry& entry, const std::string& reason);

  // Commits and, when that is done, lets the change act and runs `released`.
  void Save(JobEntry& entry, absl::AnyInvocable<void(absl::Status)> released = nullptr);

  // Starts what can start. Called when a job was queued.
  void Schedule();
  // For commits of jobs that may start: schedules and replies, which then says at once where the job was placed or why
  // it waits.
  absl::AnyInvocable<void(absl::Status)> ScheduleAndReply(JobEntry& entry, Reply reply);

  // Leases, deadlines, time-outs. Called every few milliseconds.
  void Tick();

 private:
  // Takes up what is known of the ranks, moves the job as far as that allows, commits. Does nothing when nothing
  // changed.
  void Settle(JobEntry& entry);
  bool BuryRanks(JobEntry& entry);
  void Bury(JobEntry& entry, server::RankRecord& rank, const v1::RankExit* exit);
  bool SettleTraining(JobEntry& entry);
  bool SettlePlannedRestart(JobEntry& entry);
  bool SettleRecovering(JobEntry& entry);
  // Whether the budget allows another attempt; fails the job when it does not.
  bool MayTryAgain(JobEntry& entry);
  bool SettleStopping(JobEntry& entry);

  // After an attempt that could not read its checkpoint: forgets that one. False, and the job has failed, when there is
  // no older one.
  bool FallBack(JobEntry& entry);
  void BeginRecovery(JobEntry& entry);
  void BeginAttempt(JobEntry& entry, const std::vector<DeviceChoice>& choices);
  void Fail(JobEntry& entry, const std::string& code, const std::string& reason);
  // Fills in the failure when a worker of the gang is lost.
  bool NoticeLostWorker(JobEntry& entry);

  void CheckStartDeadline(JobEntry& entry);

  // What a job's state, once it is stored, makes others do.
  struct Effects {
    std::string job_id;
    int64_t attempt = 0;
    bool joins = false;  // the attempt's rendezvous is open
    std::string reason;  // why it is closed
    DesiredByWorker desired;
  };
  Effects EffectsOf(const JobEntry& entry) const;
  void Apply(Effects effects);

  const Clock* const clock_;
  JobTable* const table_;
  WorkerRegistry* const registry_;
  Rendezvous* const rendezvous_;
  const GangOptions options_;

  bool schedule_wanted_ = false;
  absl::Duration next_schedule_ = absl::ZeroDuration();
};

}  // namespace muster
