// muster cancel, pause, resume, cordon, uncordon
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "client/verbs.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

absl::StatusOr<v1::Job> Control(Session& session, const JobControlOptions& options) {
  using Action = JobControlOptions::Action;
  switch (options.action) {
    case Action::kCancel: {
      v1::CancelJobRequest request;
      request.set_job(options.job);
      request.set_reason(options.reason);
      return session.Call(session.jobs(), &v1::JobService::Stub::CancelJob, request);
    }
    case Action::kPause: {
      v1::PauseJobRequest request;
      request.set_job(options.job);
      return session.Call(session.jobs(), &v1::JobService::Stub::PauseJob, request);
    }
    case Action::kResume: {
      v1::ResumeJobRequest request;
      request.set_job(options.job);
      return session.Call(session.jobs(), &v1::JobService::Stub::ResumeJob, request);
    }
  }
  return absl::InternalError("unknown action");
}

absl::StatusOr<v1::Worker> Control(Session& session, const WorkerControlOptions& options) {
  if (options.cordon) {
    v1::CordonWorkerRequest request;
    request.set_worker(options.worker);
    request.set_reason(options.reason);
    return session.Call(session.cluster(), &v1::ClusterService::Stub::CordonWorker, request);
  }
  v1::UncordonWorkerRequest request;
  request.set_worker(options.worker);
  return session.Call(session.cluster(), &v1::ClusterService::Stub::UncordonWorker, request);
}

}  // namespace

absl::StatusOr<ExitCode> RunVerb(Session& session, const JobControlOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const v1::Job job, Control(session, options));
  PrintResource(session.options(), job, absl::StrCat(job.id(), " ", v1::JobState_Name(job.state()), "\n"));
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunVerb(Session& session, const WorkerControlOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const v1::Worker worker, Control(session, options));
  PrintResource(session.options(), worker,
                absl::StrCat(worker.name(), " ", v1::WorkerState_Name(worker.state()), "\n"));
  return ExitCode::kOk;
}

}  // namespace muster
