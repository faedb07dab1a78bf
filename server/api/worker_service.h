// WorkerService on the wire: one Session stream for each agent.
#pragma once

#include <grpcpp/grpcpp.h>

#include "common/rpc/event_loop.h"
#include "muster/v1/worker.grpc.pb.h"
#include "server/cluster/worker_registry.h"
#include "server/job/gang_supervisor.h"
#include "server/job/log_relay.h"

namespace muster {

// Owned by the coordinator. Thread-safe, as gRPC calls it.
class WorkerService : public v1::WorkerService::CallbackService {
 public:
  WorkerService(EventLoop* loop, WorkerRegistry* registry, GangSupervisor* supervisor, LogRelay* logs)
      : loop_(loop), registry_(registry), supervisor_(supervisor), logs_(logs) {}

  grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* Session(
      grpc::CallbackServerContext* context) override;

 private:
  EventLoop* const loop_;
  WorkerRegistry* const registry_;
  GangSupervisor* const supervisor_;
  LogRelay* const logs_;
};

}  // namespace muster
