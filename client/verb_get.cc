// muster get jobs | job | workers
#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/job_view.h"
#include "client/output.h"
#include "client/verbs.h"
#include "common/base/status_macros.h"
#include "common/spec/job_file_writer.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

absl::StatusOr<v1::ListJobsResponse> ListAllJobs(Session& session, const std::vector<std::string>& states) {
  v1::ListJobsRequest request;
  request.set_page_size(1000);
  for (const std::string& name : states) {
    v1::JobState state;
    if (!v1::JobState_Parse(absl::AsciiStrToUpper(name), &state)) {
      return absl::InvalidArgumentError(absl::StrCat("--state: \"", name,
                                                     "\" is no job state; there are QUEUED, STARTING, "
                                                     "RUNNING, RECOVERING, PAUSING, PAUSED, PREEMPTING, CANCELLING, "
                                                     "COMPLETED, CANCELLED, FAILED"));
    }
    request.add_states(state);
  }
  v1::ListJobsResponse all;
  do {
    MUSTER_ASSIGN_OR_RETURN(v1::ListJobsResponse page,
                            session.Call(session.jobs(), &v1::JobService::Stub::ListJobs, request));
    for (v1::Job& job : *page.mutable_jobs()) *all.add_jobs() = std::move(job);
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return all;
}

absl::StatusOr<v1::ListWorkersResponse> ListAllWorkers(Session& session) {
  v1::ListWorkersRequest request;
  request.set_page_size(1000);
  v1::ListWorkersResponse all;
  do {
    MUSTER_ASSIGN_OR_RETURN(v1::ListWorkersResponse page,
                            session.Call(session.cluster(), &v1::ClusterService::Stub::ListWorkers, request));
    for (v1::Worker& worker : *page.mutable_workers()) *all.add_workers() = std::move(worker);
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return all;
}

}  // namespace

void PrintResource(const GlobalOptions& options, const google::protobuf::Message& message, const std::string& table) {
  switch (options.output) {
    case OutputFormat::kTable:
      std::fputs(table.c_str(), stdout);
      break;
    case OutputFormat::kJson:
      std::fputs(ToJson(message).c_str(), stdout);
      break;
    case OutputFormat::kYaml:
      std::fputs(ToYaml(message).c_str(), stdout);
      break;
  }
}

void PrintJson(const GlobalOptions& options, const nlohmann::ordered_json& json, const std::string& table) {
  switch (options.output) {
    case OutputFormat::kTable:
      std::fputs(table.c_str(), stdout);
      break;
    case OutputFormat::kJson:
      std::printf("%s\n", json.dump(1).c_str());
      break;
    case OutputFormat::kYaml:
      std::fputs(JsonToYaml(json).c_str(), stdout);
      break;
  }
}

absl::StatusOr<ExitCode> RunVerb(Session& session, const GetOptions& options) {
  const Palette palette(ColoursWanted(session.options().no_color));
  switch (options.kind) {
    case GetOptions::Kind::kJobs: {
      MUSTER_ASSIGN_OR_RETURN(const v1::ListJobsResponse jobs, ListAllJobs(session, options.states));
      PrintResource(session.options(), jobs, JobsTable(jobs, absl::Now(), palette));
      break;
    }
    case GetOptions::Kind::kJob: {
      v1::GetJobRequest request;
      request.set_job(options.job);
      MUSTER_ASSIGN_OR_RETURN(const v1::Job job, session.Call(session.jobs(), &v1::JobService::Stub::GetJob, request));
      if (options.job_file) {
        std::fputs(WriteJobFile(job.resolved_spec()).c_str(), stdout);
        break;
      }
      v1::ListJobsResponse one;
      *one.add_jobs() = job;
      PrintResource(session.options(), job, JobsTable(one, absl::Now(), palette));
      break;
    }
    case GetOptions::Kind::kWorkers: {
      MUSTER_ASSIGN_OR_RETURN(const v1::ListWorkersResponse workers, ListAllWorkers(session));
      PrintResource(session.options(), workers, WorkersTable(workers, absl::Now(), palette));
      break;
    }
  }
  return ExitCode::kOk;
}

}  // namespace muster
