// WorkerService on the wire: one Session stream for each agent.
#pragma once

#include <grpcpp/grpcpp.h>

#include "common/rpc/event_loop.h"
#include "muster/v1/worker.grpc.pb.h"
#include "server/cluster/worker_registry.h"
#include "server/job/gang_supervisor.h"
#include "server/job/log_relay.h"
#include "server/job/metric_store.h"
#include "server/job/trace_relay.h"

namespace muster {

// Who takes what agents say. All outlive the service.
struct WorkerServiceParts {
  WorkerRegistry* registry = nullptr;
  GangSupervisor* supervisor = nullptr;
  LogRelay* logs = nullptr;
  MetricStore* metrics = nullptr;
  TraceRelay* traces = nullptr;
};

// Owned by the coordinator. Thread-safe, as gRPC calls it.
class WorkerService : public v1::WorkerService::CallbackService {
 public:
  WorkerService(EventLoop* loop, const WorkerServiceParts& parts) : loop_(loop), parts_(parts) {}

  grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* Session(
      grpc::CallbackServerContext* context) override;

 private:
  EventLoop* const loop_;
  const WorkerServiceParts parts_;
};

}  // namespace muster
