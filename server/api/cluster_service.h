// ClusterService on the wire. Every call runs on the coordinator's loop.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>

#include "common/rpc/event_loop.h"
#include "muster/v1/cluster.grpc.pb.h"
#include "server/cluster/worker_registry.h"

namespace muster {

// Owned by the coordinator. Thread-safe, as gRPC calls it.
class ClusterService : public v1::ClusterService::CallbackService {
 public:
  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;

  // `info` is called on the loop.
  ClusterService(EventLoop* loop, WorkerRegistry* registry, std::function<v1::ClusterInfo()> info)
      : loop_(loop), registry_(registry), info_(std::move(info)) {}

  Unary* ListWorkers(Context* context, const v1::ListWorkersRequest* request,
                     v1::ListWorkersResponse* response) override;
  Unary* CordonWorker(Context* context, const v1::CordonWorkerRequest* request, v1::Worker* response) override;
  Unary* UncordonWorker(Context* context, const v1::UncordonWorkerRequest* request, v1::Worker* response) override;
  Unary* GetClusterInfo(Context* context, const v1::GetClusterInfoRequest* request, v1::ClusterInfo* response) override;

  // Of a later version: UNIMPLEMENTED, naming the call.
  Unary* DrainWorker(Context* context, const v1::DrainWorkerRequest* request, v1::Worker* response) override;
  Unary* ListQueues(Context* context, const v1::ListQueuesRequest* request, v1::ListQueuesResponse* response) override;
  Unary* CreateToken(Context* context, const v1::CreateTokenRequest* request, v1::Token* response) override;
  Unary* ListTokens(Context* context, const v1::ListTokensRequest* request, v1::ListTokensResponse* response) override;
  Unary* RevokeToken(Context* context, const v1::RevokeTokenRequest* request, v1::Token* response) override;

 private:
  absl::StatusOr<v1::ListWorkersResponse> List(const v1::ListWorkersRequest& request);

  EventLoop* const loop_;
  WorkerRegistry* const registry_;
  const std::function<v1::ClusterInfo()> info_;
};

}  // namespace muster
