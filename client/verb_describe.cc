// muster describe job
#include "absl/time/clock.h"
#include "client/job_view.h"
#include "client/verbs.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr int kNewestEvents = 15;

absl::StatusOr<v1::ListEventsResponse> AllEvents(Session& session, const std::string& job) {
  v1::ListEventsRequest request;
  request.set_job(job);
  request.set_page_size(1000);
  v1::ListEventsResponse all;
  do {
    MUSTER_ASSIGN_OR_RETURN(v1::ListEventsResponse page,
                            session.Call(session.jobs(), &v1::JobService::Stub::ListEvents, request));
    for (v1::Event& event : *page.mutable_events()) *all.add_events() = std::move(event);
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return all;
}

}  // namespace

absl::StatusOr<ExitCode> RunVerb(Session& session, const DescribeOptions& options) {
  v1::GetJobRequest request;
  request.set_job(options.job);
  MUSTER_ASSIGN_OR_RETURN(const v1::Job job, session.Call(session.jobs(), &v1::JobService::Stub::GetJob, request));
  MUSTER_ASSIGN_OR_RETURN(v1::ListEventsResponse events, AllEvents(session, job.id()));
  if (const int older = events.events_size() - kNewestEvents; older > 0 && !options.events) {
    events.mutable_events()->DeleteSubrange(0, older);
  }
  const Palette palette(ColoursWanted(session.options().no_color));
  PrintResource(session.options(), job, JobDescription(job, events, absl::Now(), palette));
  return ExitCode::kOk;
}

}  // namespace muster
