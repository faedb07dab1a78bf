// One `muster` command's connection to the coordinator. Used by one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/options.h"
#include "muster/v1/cluster.grpc.pb.h"
#include "muster/v1/job.grpc.pb.h"

namespace muster {

class Session {
 public:
  explicit Session(const GlobalOptions& options);

  const GlobalOptions& options() const { return options_; }

  // Calls `stub->*method` under the deadline of --timeout. A coordinator that cannot be reached gives UNAVAILABLE that
  // says where it was looked for and what to do.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(Stub& stub,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request) {
    grpc::ClientContext context;
    SetDeadline(context, options_.timeout_seconds);
    Response response;
    const absl::Status status = Explain((stub.*method)(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  v1::JobService::Stub& jobs() { return *jobs_; }
  v1::ClusterService::Stub& cluster() { return *cluster_; }

  // Follows WatchJob until the job has ended: through lost connections (it continues where it was and tries for
  // --timeout), and no longer than `wait_timeout_seconds` (0: for ever; DEADLINE_EXCEEDED). `on_change` is called for
  // the snapshot and every change, and `on_lost` when the coordinator is out of reach. Returns the job as it ended.
  absl::StatusOr<v1::Job> WatchJob(const std::string& job, double wait_timeout_seconds,
                                   const std::function<void(const v1::WatchJobResponse&)>& on_change,
                                   const std::function<void(const absl::Status&)>& on_lost);

  static void SetDeadline(grpc::ClientContext& context, double seconds);

  // The status with the coordinator's address in it where it is about the connection.
  absl::Status Explain(const grpc::Status& status) const;

 private:
  const GlobalOptions options_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::ClusterService::Stub> cluster_;
};

// COMPLETED, CANCELLED or FAILED.
bool HasEnded(v1::JobState state);

// A request id that no other call has.
std::string NewRequestId();

}  // namespace muster
