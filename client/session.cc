#include "client/session.h"

#include <grpcpp/grpcpp.h>

#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/rpc/address.h"
#include "common/rpc/grpc_status.h"

namespace muster {
namespace {

// A coordinator that restarts is back within seconds; this often is it asked.
constexpr absl::Duration kWatchRetryInterval = absl::Milliseconds(250);

}  // namespace

Session::Session(const GlobalOptions& options)
    : options_(options),
      channel_(MakeChannel(options.coordinator)),
      jobs_(v1::JobService::NewStub(channel_)),
      cluster_(v1::ClusterService::NewStub(channel_)) {}

void Session::SetDeadline(grpc::ClientContext& context, double seconds) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(seconds)));
}

absl::Status Session::Explain(const grpc::Status& grpc_status) const {
  const absl::Status status = FromGrpcStatus(grpc_status);
  // Statuses that the coordinator made carry ErrorInfo; one without is the connection's.
  if (!ErrorInfoOf(status).reason().empty()) return status;
  if (status.code() == absl::StatusCode::kUnavailable) {
    return absl::UnavailableError(absl::StrCat("cannot reach the coordinator at ", options_.coordinator, " (",
                                               status.message(),
                                               "); is musterd running there? Set --coordinator or MUSTER_COORDINATOR"));
  }
  if (status.code() == absl::StatusCode::kDeadlineExceeded) {
    return absl::DeadlineExceededError(absl::StrCat("the coordinator at ", options_.coordinator,
                                                    " did not answer within ", options_.timeout_seconds,
                                                    " s; see --timeout"));
  }
  return status;
}

absl::StatusOr<v1::Job> Session::WatchJob(const std::string& job, double wait_timeout_seconds,
                                          const std::function<void(const v1::WatchJobResponse&)>& on_change,
                                          const std::function<void(const absl::Status&)>& on_lost) {
  const absl::Time start = absl::Now();
  const absl::Time give_up =
      wait_timeout_seconds > 0 ? start + absl::Seconds(wait_timeout_seconds) : absl::InfiniteFuture();
  v1::WatchJobRequest request;
  request.set_job(job);
  absl::Time last_contact = start;
  bool connected_once = false;
  v1::Job newest;
  while (true) {
    grpc::ClientContext context;
    if (give_up != absl::InfiniteFuture()) context.set_deadline(absl::ToChronoTime(give_up));
    const auto reader = jobs_->WatchJob(&context, request);
    v1::WatchJobResponse response;
    while (reader->Read(&response)) {
      connected_once = true;
      last_contact = absl::Now();
      request.set_resume_token(response.resume_token());
      request.set_job(response.job().id());  // a name may come to mean another job
      newest = response.job();
      on_change(response);
    }
    const grpc::Status finished = reader->Finish();
    if (HasEnded(newest.state())) return newest;
    if (absl::Now() >= give_up) {
      return absl::DeadlineExceededError(absl::StrCat(newest.id().empty() ? job : newest.id(), " has not ended after ",
                                                      wait_timeout_seconds, " s; it goes on"));
    }
    const absl::Status status = Explain(finished);
    if (ErrorInfoOf(status).reason() == "RESUME_TOKEN_EXPIRED") {
      request.clear_resume_token();  // a fresh snapshot says all
      continue;
    }
    const bool lost = status.ok() || status.code() == absl::StatusCode::kUnavailable;
    if (!lost || !connected_once || absl::Now() - last_contact > absl::Seconds(options_.timeout_seconds)) return status;
    on_lost(status);
    absl::SleepFor(kWatchRetryInterval);
  }
}

bool HasEnded(v1::JobState state) { return state == v1::COMPLETED || state == v1::CANCELLED || state == v1::FAILED; }

std::string NewRequestId() {
  std::random_device device;
  std::string id;
  for (int i = 0; i < 4; ++i) absl::StrAppend(&id, absl::Hex(device(), absl::kZeroPad8));
  return id;
}

}  // namespace muster
