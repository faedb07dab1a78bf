// muster-worker: owns and wires everything of one host's agent. Read this to see how the parts talk.
//
//   coordinator <--session--> Agent --desired--> RankSupervisor --fork--> muster-rank
//                               ^------reports----- RankServiceServer <--Unix socket--'
//
// All on one event loop, run by the thread that calls Run. That thread forks the ranks and must be the process's main
// thread: ranks die with it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/file_lock.h"
#include "common/base/lease_file.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/http.h"
#include "muster/v1/worker.grpc.pb.h"
#include "worker/agent/checkpoint_janitor.h"
#include "worker/agent/exporter.h"
#include "worker/agent/fd_watcher.h"
#include "worker/agent/fence.h"
#include "worker/agent/log_requests.h"
#include "worker/agent/log_spool.h"
#include "worker/agent/options.h"
#include "worker/agent/rank_service.h"
#include "worker/agent/rank_supervisor.h"
#include "worker/agent/report_backlog.h"
#include "worker/agent/session.h"

namespace muster {

class Agent {
 public:
  // Takes the lock of the state directory and opens the ports. FAILED_PRECONDITION when another agent has the
  // directory. REQUIRES: the options pass CheckAgentOptions. `loop` and `clock` outlive the agent.
  static absl::StatusOr<std::unique_ptr<Agent>> Create(const AgentOptions& options, const std::string& version,
                                                       EventLoop* loop, const Clock* clock);
  ~Agent();

  // Connects, and serves until the loop is stopped.
  void Run();

  // Any thread. First: ranks write their checkpoints and end, the coordinator hears of it, then the loop stops. Again:
  // at once.
  void Shutdown(int count);

  // Where /metrics is, with the real port.
  const HostPort& http_address() const { return http_->address(); }

 private:
  Agent(const AgentOptions& options, const std::string& version, EventLoop* loop, const Clock* clock, FileLock lock,
        LeaseStamp stamp);
  absl::Status Listen();
  RankCommandOptions CommandOptions() const;
  SupervisorEvents MakeSupervisorEvents();
  SessionEvents MakeSessionEvents();

  // From the coordinator.
  v1::Hello MakeHello();
  void OnWelcome(const v1::Welcome& welcome, absl::Duration hello_sent);
  void OnMessage(const v1::CoordinatorMessage& message);
  void OnLost(const absl::Status& status);
  void OnDesired(const v1::Desired& desired);

  // From the ranks and their processes.
  void OnReport(const v1::RankReport& report);
  void OnChange();
  void LogChanges(const std::vector<v1::ObservedRank>& ranks);

  void AdoptEarlierRanks(int tries);
  void SendHeartbeat();
  void Tick();
  void EndWhenIdle();

  // Constant after construction.
  const AgentOptions options_;
  const std::string version_;
  const std::string id_;  // of this run of the agent
  EventLoop* const loop_;
  const Clock* const clock_;
  const FileLock lock_;

  // On the loop.
  LeaseStamp stamp_;
  v1::Inventory inventory_;
  FdWatcher watcher_;
  LogSpool spool_;
  Exporter exporter_;
  CheckpointJanitor janitor_;
  ReportBacklog backlog_;
  Fence fence_;
  RankSupervisor supervisor_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  CoordinatorSession session_;
  LogRequests log_requests_;
  std::unique_ptr<RankServiceServer> rank_service_;

  std::map<RankKey, v1::RankPhase> logged_;  // the phase of each rank that the log has told
  absl::Duration heartbeat_interval_ = absl::Seconds(2);
  int64_t heartbeat_sequence_ = 0;
  EventLoop::TimerId heartbeat_timer_ = 0;  // 0: none
  bool change_posted_ = false;              // a heartbeat for changes is on its way
  bool told_lost_ = false;                  // this outage is in the log
  int shutdowns_ = 0;
  absl::Duration end_by_ = absl::InfiniteDuration();  // since boot; after this nobody waits for acknowledgements

  std::atomic<int64_t> newest_tick_seconds_{0};  // since boot, for /healthz
  std::unique_ptr<HttpServer> http_;             // last: its threads read what is above
};

}  // namespace muster
