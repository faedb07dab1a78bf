// What users ask of jobs: submit, look, cancel, pause, resume. Validates, asks the table and the supervisor, replies
// when what was asked is stored.
//
// Owned by the coordinator; all calls on its loop. Errors carry ErrorInfo; an unknown job is NOT_FOUND with reason
// JOB_NOT_FOUND.
#pragma once

#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "muster/v1/job.pb.h"
#include "server/job/admission.h"
#include "server/job/gang_supervisor.h"
#include "server/job/job_table.h"

namespace muster {

class JobManager {
 public:
  using Reply = GangSupervisor::Reply;

  JobManager(JobTable* table, const WorkerRegistry* registry, GangSupervisor* supervisor, const Admission* admission)
      : table_(table), registry_(registry), supervisor_(supervisor), admission_(admission) {}

  void Submit(const v1::SubmitJobRequest& request, Reply reply);
  absl::StatusOr<v1::Job> Get(const std::string& job);
  absl::StatusOr<v1::ListJobsResponse> List(const v1::ListJobsRequest& request);
  absl::StatusOr<v1::ListEventsResponse> ListEvents(const v1::ListEventsRequest& request);
  absl::StatusOr<v1::ListCheckpointsResponse> ListCheckpoints(const v1::ListCheckpointsRequest& request);
  absl::StatusOr<v1::Plan> Plan(const v1::PlanJobRequest& request);
  void Cancel(const v1::CancelJobRequest& request, Reply reply);
  void Pause(const v1::PauseJobRequest& request, Reply reply);
  void Resume(const v1::ResumeJobRequest& request, Reply reply);
  // As JobTable::Watch, by id or name.
  absl::Status Watch(const v1::WatchJobRequest& request, JobWatcher* watcher);

  // A job that is stored, by id or name.
  absl::StatusOr<JobEntry*> Find(const std::string& job);

 private:
  void ReplyToRepeated(const v1::SubmitJobRequest& request, JobEntry& entry, Reply reply);

  JobTable* const table_;
  const WorkerRegistry* const registry_;
  GangSupervisor* const supervisor_;
  const Admission* const admission_;
};

}  // namespace muster
