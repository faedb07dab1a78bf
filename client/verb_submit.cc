// muster submit
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/verbs.h"
#include "common/base/status_macros.h"
#include "common/rpc/grpc_status.h"
#include "common/spec/job_file.h"

namespace muster {
namespace {

// What the coordinator finds wrong with the spec, said with the lines of the file that it came from.
absl::Status InTermsOfTheFile(const JobFile& file, const absl::Status& status) {
  std::vector<Problem> problems;
  const google::rpc::BadRequest bad_request = BadRequestOf(status);
  for (const auto& violation : bad_request.field_violations()) {
    Problem problem;
    // A file says the unit beside the number, the schema in the field's name.
    problem.field = std::string(absl::StripSuffix(absl::StripPrefix(violation.field(), "spec."), "_bytes"));
    problem.message = violation.description();
    problems.push_back(std::move(problem));
  }
  if (problems.empty()) return status;
  return absl::Status(status.code(), file.Describe(problems));
}

}  // namespace

absl::StatusOr<ExitCode> RunVerb(Session& session, const SubmitOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const JobFile file, ReadJobFile(options.file));
  if (!file.problems.empty()) return absl::InvalidArgumentError(file.Describe(file.problems));
  v1::SubmitJobRequest request;
  *request.mutable_spec() = file.spec;
  request.set_request_id(options.request_id.empty() ? NewRequestId() : options.request_id);
  request.set_validate_only(options.validate_only);
  const absl::StatusOr<v1::Job> job = session.Call(session.jobs(), &v1::JobService::Stub::SubmitJob, request);
  if (!job.ok()) return InTermsOfTheFile(file, job.status());

  if (options.validate_only) {
    PrintResource(session.options(), *job, absl::StrCat(options.file, " is valid; nothing was submitted\n"));
    return ExitCode::kOk;
  }
  const bool follow = options.wait || options.watch;
  if (!follow || session.options().output == OutputFormat::kTable) {
    std::string line = absl::StrCat(job->id(), " ", v1::JobState_Name(job->state()));
    if (!job->queue_status().reason().empty()) absl::StrAppend(&line, ": ", job->queue_status().reason());
    PrintResource(session.options(), *job, line + "\n");
    std::fflush(stdout);
  }
  if (!follow) return ExitCode::kOk;
  return FollowJob(session, job->id(), options.wait_timeout_seconds, /*quiet=*/options.wait);
}

}  // namespace muster
