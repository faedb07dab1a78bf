#include "client/checkpoint_argument.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

struct JobAndStep {
  std::string job;
  std::optional<int64_t> step;
};

absl::StatusOr<JobAndStep> Split(const std::string& argument) {
  JobAndStep split{.job = argument};
  const size_t at = argument.rfind('@');
  if (at == std::string::npos) return split;
  int64_t step = 0;
  if (!absl::SimpleAtoi(absl::string_view(argument).substr(at + 1), &step)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", argument, "\": behind @ stands a step, as in JOB@200"));
  }
  split.job.resize(at);
  split.step = step;
  return split;
}

absl::StatusOr<v1::Checkpoint> NewestOf(Session& session, const std::string& job) {
  v1::GetJobRequest request;
  request.set_job(job);
  MUSTER_ASSIGN_OR_RETURN(const v1::Job answer, session.Call(session.jobs(), &v1::JobService::Stub::GetJob, request));
  if (answer.has_last_checkpoint()) return answer.last_checkpoint();
  return absl::NotFoundError(absl::StrCat(answer.id(), " has no checkpoint yet"));
}

absl::StatusOr<v1::Checkpoint> OfStep(Session& session, const std::string& job, int64_t step) {
  v1::ListCheckpointsRequest request;
  request.set_job(job);
  MUSTER_ASSIGN_OR_RETURN(const v1::ListCheckpointsResponse answer,
                          session.Call(session.jobs(), &v1::JobService::Stub::ListCheckpoints, request));
  std::string steps;
  for (const v1::Checkpoint& checkpoint : answer.checkpoints()) {
    if (checkpoint.step() == step) return checkpoint;
    absl::StrAppend(&steps, steps.empty() ? "" : ", ", checkpoint.step());
  }
  return absl::NotFoundError(absl::StrCat(job, " has no checkpoint of step ", step, "; it has ",
                                          steps.empty() ? "none" : absl::StrCat("steps ", steps)));
}

}  // namespace

absl::StatusOr<std::string> ResolveCheckpoint(Session& session, const std::string& argument,
                                              const std::string& checkpoint_root) {
  if (PathExists(argument)) return argument;
  MUSTER_ASSIGN_OR_RETURN(const JobAndStep wanted, Split(argument));
  absl::StatusOr<v1::Checkpoint> checkpoint =
      wanted.step.has_value() ? OfStep(session, wanted.job, *wanted.step) : NewestOf(session, wanted.job);
  if (!checkpoint.ok()) {
    return absl::Status(checkpoint.status().code(), absl::StrCat("there is no directory ", argument,
                                                                 ", and as a job: ", checkpoint.status().message()));
  }
  const std::string path = absl::StrCat(checkpoint_root, "/", checkpoint->path());
  if (PathExists(path)) return path;
  return absl::NotFoundError(absl::StrCat(argument, " is ", checkpoint->path(), ", which is not below ",
                                          checkpoint_root,
                                          "; say with --checkpoint-root where the workers' checkpoints are here"));
}

}  // namespace muster
