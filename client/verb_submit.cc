// muster submit
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/verbs.h"
#include "common/base/status_macros.h"
#include "common/rpc/grpc_status.h"
#include "common/spec/job_file.h"
#include "common/spec/set_field.h"
#include "common/spec/validate.h"

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

// The file, with what --set says over it. Without a file only what --set says.
absl::StatusOr<JobFile> ReadSpec(const SubmitOptions& options, google::protobuf::FieldMask& mask) {
  JobFile file;
  if (!options.file.empty()) {
    MUSTER_ASSIGN_OR_RETURN(file, ReadJobFile(options.file, options.data_root));
  }
  for (const std::string& assignment : options.set) {
    const absl::StatusOr<std::string> path = SetField(assignment, &file.spec);
    if (!path.ok()) return absl::InvalidArgumentError(absl::StrCat("--set ", path.status().message()));
    mask.add_paths(*path);
  }
  if (options.file.empty()) return file;
  if (!options.set.empty()) file.problems = ValidateSpec(file.spec);
  if (!file.problems.empty()) return absl::InvalidArgumentError(file.Describe(file.problems));
  return file;
}

absl::StatusOr<v1::Job> Submit(Session& session, const SubmitOptions& options, const JobFile& file) {
  v1::SubmitJobRequest request;
  *request.mutable_spec() = file.spec;
  request.set_request_id(options.request_id.empty() ? NewRequestId() : options.request_id);
  request.set_validate_only(options.validate_only);
  const absl::StatusOr<v1::Job> job = session.Call(session.jobs(), &v1::JobService::Stub::SubmitJob, request);
  if (!job.ok()) return InTermsOfTheFile(file, job.status());
  return job;
}

absl::StatusOr<v1::Job> Fork(Session& session, const SubmitOptions& options, const JobFile& file,
                             const google::protobuf::FieldMask& mask) {
  v1::ForkJobRequest request;
  const std::vector<std::string> parts = absl::StrSplit(options.from, absl::MaxSplits('@', 1));
  request.set_job(parts[0]);
  int64_t step = 0;
  if (parts.size() == 2 && (!absl::SimpleAtoi(parts[1], &step) || step <= 0)) {
    return absl::InvalidArgumentError(absl::StrCat("--from: \"", options.from, "\" is not JOB or JOB@STEP"));
  }
  request.set_step(step);
  if (!options.file.empty() || !mask.paths().empty()) *request.mutable_spec() = file.spec;
  // A file says all; without one the new job is the old one with these fields changed.
  if (options.file.empty()) *request.mutable_update_mask() = mask;
  request.set_request_id(options.request_id.empty() ? NewRequestId() : options.request_id);
  request.set_validate_only(options.validate_only);
  const absl::StatusOr<v1::Job> job = session.Call(session.jobs(), &v1::JobService::Stub::ForkJob, request);
  if (!job.ok() && !options.file.empty()) return InTermsOfTheFile(file, job.status());
  return job;
}

}  // namespace

absl::StatusOr<ExitCode> RunVerb(Session& session, const SubmitOptions& options) {
  if (options.file.empty() && options.from.empty()) {
    return absl::InvalidArgumentError("FILE is required, or --from JOB. Run `muster submit --help` for what there is.");
  }
  google::protobuf::FieldMask mask;
  MUSTER_ASSIGN_OR_RETURN(const JobFile file, ReadSpec(options, mask));
  MUSTER_ASSIGN_OR_RETURN(const v1::Job job,
                          options.from.empty() ? Submit(session, options, file) : Fork(session, options, file, mask));
  if (options.validate_only) {
    PrintResource(
        session.options(), job,
        absl::StrCat(options.file.empty() ? options.from : options.file, " is valid; nothing was submitted\n"));
    return ExitCode::kOk;
  }
  const bool follow = options.wait || options.watch;
  if (!follow || session.options().output == OutputFormat::kTable) {
    std::string line = absl::StrCat(job.id(), " ", v1::JobState_Name(job.state()));
    if (job.has_forked_from()) {
      absl::StrAppend(&line, ", begins with the checkpoint of step ", job.forked_from().step(), " of ",
                      job.forked_from().job_id());
    }
    if (!job.queue_status().reason().empty()) absl::StrAppend(&line, ": ", job.queue_status().reason());
    PrintResource(session.options(), job, line + "\n");
    std::fflush(stdout);
  }
  if (!follow) return ExitCode::kOk;
  return FollowJob(session, job.id(), options.wait_timeout_seconds, /*quiet=*/options.wait);
}

}  // namespace muster
