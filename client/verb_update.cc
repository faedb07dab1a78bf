// muster update job
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/verbs.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// Labels are replaced as a whole in the schema; here one at a time.
absl::Status SetLabels(Session& session, const UpdateOptions& options, v1::UpdateJobRequest& request) {
  v1::GetJobRequest get;
  get.set_job(options.job);
  MUSTER_ASSIGN_OR_RETURN(const v1::Job job, session.Call(session.jobs(), &v1::JobService::Stub::GetJob, get));
  auto& labels = *request.mutable_spec()->mutable_labels();
  labels = job.spec().labels();
  for (const std::string& label : options.labels) {
    const std::vector<std::string> sides = absl::StrSplit(label, absl::MaxSplits('=', 1));
    if (sides.size() == 2) {
      labels[sides[0]] = sides[1];
    } else if (!label.empty() && label.back() == '-') {
      labels.erase(label.substr(0, label.size() - 1));
    } else {
      return absl::InvalidArgumentError(absl::StrCat("--label: \"", label, "\" is neither KEY=VALUE nor KEY-"));
    }
  }
  request.mutable_update_mask()->add_paths("labels");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExitCode> RunVerb(Session& session, const UpdateOptions& options) {
  v1::UpdateJobRequest request;
  request.set_job(options.job);
  if (options.steps.has_value()) {
    request.mutable_spec()->mutable_training()->set_steps(*options.steps);
    request.mutable_update_mask()->add_paths("training.steps");
  }
  if (options.priority.has_value()) {
    request.mutable_spec()->mutable_policy()->set_priority(static_cast<int32_t>(*options.priority));
    request.mutable_update_mask()->add_paths("policy.priority");
  }
  if (!options.labels.empty()) MUSTER_RETURN_IF_ERROR(SetLabels(session, options, request));
  if (request.update_mask().paths().empty()) {
    return absl::InvalidArgumentError("say what changes: --steps, --priority or --label");
  }
  MUSTER_ASSIGN_OR_RETURN(const v1::Job job, session.Call(session.jobs(), &v1::JobService::Stub::UpdateJob, request));
  std::string line = absl::StrCat(job.id(), " ", v1::JobState_Name(job.state()));
  if (options.steps.has_value()) {
    absl::StrAppend(&line, ": trains to step ", *options.steps);
    if (job.state() == v1::RUNNING || job.state() == v1::STARTING) {
      absl::StrAppend(&line,
                      "; its ranks learn of it by a new attempt, from a checkpoint written now, free of charge to "
                      "policy.max_restarts");
    }
  }
  PrintResource(session.options(), job, line + "\n");
  return ExitCode::kOk;
}

}  // namespace muster
