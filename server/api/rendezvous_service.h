// RendezvousService on the wire. A caller that goes away while it waits leaves the rendezvous.
#pragma once

#include <grpcpp/grpcpp.h>

#include "common/rpc/event_loop.h"
#include "muster/v1/rendezvous.grpc.pb.h"
#include "server/cluster/rendezvous.h"

namespace muster {

// Owned by the coordinator. Thread-safe, as gRPC calls it.
class RendezvousService : public v1::RendezvousService::CallbackService {
 public:
  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;

  RendezvousService(EventLoop* loop, Rendezvous* rendezvous) : loop_(loop), rendezvous_(rendezvous) {}

  Unary* JoinGroup(Context* context, const v1::JoinGroupRequest* request, v1::JoinGroupResponse* response) override;
  Unary* PublishUniqueId(Context* context, const v1::PublishUniqueIdRequest* request,
                         v1::PublishUniqueIdResponse* response) override;
  Unary* AwaitUniqueId(Context* context, const v1::AwaitUniqueIdRequest* request,
                       v1::AwaitUniqueIdResponse* response) override;
  Unary* SetKey(Context* context, const v1::SetKeyRequest* request, v1::SetKeyResponse* response) override;
  Unary* AwaitKey(Context* context, const v1::AwaitKeyRequest* request, v1::AwaitKeyResponse* response) override;

 private:
  EventLoop* const loop_;
  Rendezvous* const rendezvous_;
};

}  // namespace muster
