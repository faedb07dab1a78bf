// musterd as an object: owns every part of the coordinator and wires them together.
//
//   gRPC services --post--> EventLoop: JobManager -> GangSupervisor -> JobTable ------> Store (own thread) --post-->
//   effects
//                                      WorkerRegistry, Rendezvous, LogRelay <-----------------------------------------'
//
// One thread, the loop, reads and changes all state. Killing the process at any moment loses nothing that anybody was
// told: what is in the store is read at the start, agents come back with their ranks, and both are reconciled.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/http.h"
#include "muster/v1/cluster.pb.h"
#include "server/options.h"

namespace grpc {
class Server;
}

namespace muster {

class ClusterService;
class JobChanges;
class JobManager;
class JobService;
class JobTable;
class GangSupervisor;
class LogRelay;
class MetricStore;
class Rendezvous;
class RendezvousService;
class ServerMetrics;
class SpecAdmission;
class SqliteStore;
class TraceRelay;
class WorkerService;

class Coordinator {
 public:
  // Opens the state, listens, and serves. Errors name the flag and say what to do.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Start(ServerOptions options, std::string version,
                                                            const Clock* clock);
  // Stops serving. Ranks go on training; agents reconnect when a coordinator is there again.
  ~Coordinator();

  // Blocks until Stop, or until the state can no longer be stored: then that is the status.
  absl::Status Wait();
  // Thread-safe.
  void Stop();

  // With the real ports.
  const HostPort& listen_address() const { return options_.listen; }
  const HostPort& http_address() const { return http_->address(); }

 private:
  Coordinator(ServerOptions options, std::string version, const Clock* clock);

  absl::Status OpenState();
  absl::Status LoadCluster();
  absl::Status Listen();
  void Tick();
  v1::ClusterInfo Info() const;
  absl::Status Health();
  void End(absl::Status status);

  // Constant once started.
  ServerOptions options_;
  const std::string version_;
  const Clock* const clock_;
  std::string cluster_id_;
  int64_t starts_ = 0;
  const absl::Time started_at_;

  // What is first is destroyed last.
  EventLoop loop_;
  std::unique_ptr<ServerMetrics> metrics_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<JobTable> table_;
  std::unique_ptr<WorkerRegistry> registry_;
  std::unique_ptr<Rendezvous> rendezvous_;
  std::unique_ptr<GangSupervisor> supervisor_;
  std::unique_ptr<SpecAdmission> admission_;
  std::unique_ptr<JobManager> manager_;
  std::unique_ptr<JobChanges> changes_;
  std::unique_ptr<LogRelay> logs_;
  std::unique_ptr<MetricStore> history_;
  std::unique_ptr<TraceRelay> traces_;
  std::unique_ptr<JobService> job_service_;
  std::unique_ptr<ClusterService> cluster_service_;
  std::unique_ptr<WorkerService> worker_service_;
  std::unique_ptr<RendezvousService> rendezvous_service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<HttpServer> http_;
  std::thread thread_;  // runs loop_

  // On the loop.
  absl::Duration next_metrics_ = absl::ZeroDuration();

  absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
  absl::Duration last_tick_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
};

}  // namespace muster
