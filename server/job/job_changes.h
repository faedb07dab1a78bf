// What users change of jobs that exist, and new jobs that begin where others are: UpdateJob, ForkJob, SaveCheckpoint.
//
// Owned by the coordinator; all calls on its loop. Errors carry ErrorInfo, as those of JobManager do.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "muster/v1/job.pb.h"
#include "server/job/admission.h"
#include "server/job/job_manager.h"

namespace muster {

class JobChanges {
 public:
  using Reply = JobManager::Reply;
  using CheckpointReply = absl::AnyInvocable<void(absl::StatusOr<v1::Checkpoint>)>;

  JobChanges(const Clock* clock, JobTable* table, const WorkerRegistry* registry, GangSupervisor* supervisor,
             JobManager* manager, const Admission* admission)
      : clock_(clock),
        table_(table),
        registry_(registry),
        supervisor_(supervisor),
        manager_(manager),
        admission_(admission) {}

  void Update(const v1::UpdateJobRequest& request, Reply reply);
  void Fork(const v1::ForkJobRequest& request, Reply reply);

  // Replies with the first complete checkpoint that has every step known when it was asked for: that one is written
  // after the step under way, unless another comes first. ABORTED when the attempt ends without one.
  void SaveCheckpoint(const v1::SaveCheckpointRequest& request, CheckpointReply reply);

  // Answers the calls that wait for checkpoints. Called every few milliseconds.
  void Tick();
  // Ends every waiting call with this status: the coordinator ends.
  void EndAll(const absl::Status& status);

 private:
  struct Waiting {
    std::string job_id;
    int64_t attempt = 0;
    int64_t step = 0;  // at least this one
    CheckpointReply reply;
  };

  absl::Status ApplyUpdate(const v1::UpdateJobRequest& request, JobEntry& entry);
  absl::StatusOr<server::JobRecord> MakeFork(const v1::ForkJobRequest& request, const JobEntry& source);
  // True when the call was answered.
  bool Answer(Waiting& waiting);

  const Clock* const clock_;
  JobTable* const table_;
  const WorkerRegistry* const registry_;
  GangSupervisor* const supervisor_;
  JobManager* const manager_;
  const Admission* const admission_;
  std::vector<Waiting> waiting_;
};

}  // namespace muster
