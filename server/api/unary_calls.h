// How a unary call is answered from the coordinator's loop, and how one that does not exist yet is refused.
#pragma once

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/grpc_status.h"

namespace muster {

// Finishes one call. Called once, on the loop.
template <typename Response>
using Answer = absl::AnyInvocable<void(absl::StatusOr<Response>)>;

// Runs `handle(answer)` on the loop. Request and response of the call stay valid until the answer.
template <typename Response, typename Handler>
grpc::ServerUnaryReactor* AnswerOnLoop(EventLoop* loop, grpc::CallbackServerContext* context, Response* response,
                                       Handler handle) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  loop->Post([reactor, response, handle = std::move(handle)]() mutable {
    handle(Answer<Response>([reactor, response](absl::StatusOr<Response> result) {
      if (result.ok()) *response = *std::move(result);
      reactor->Finish(ToGrpcStatus(result.status()));
    }));
  });
  return reactor;
}

// UNIMPLEMENTED, naming the call: "JobService.ForkJob".
inline grpc::Status NotImplemented(absl::string_view call) {
  return ToGrpcStatus(ErrorWithInfo(absl::StatusCode::kUnimplemented, "UNIMPLEMENTED",
                                    absl::StrCat(call, " is not supported by this version of musterd"),
                                    {{"call", std::string(call)}}));
}

inline grpc::ServerUnaryReactor* RefuseUnary(grpc::CallbackServerContext* context, absl::string_view call) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(NotImplemented(call));
  return reactor;
}

}  // namespace muster
