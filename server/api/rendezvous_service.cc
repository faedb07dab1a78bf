#include "server/api/rendezvous_service.h"

#include <functional>
#include <string>
#include <utility>

#include "common/rpc/proto_time.h"
#include "server/api/unary_calls.h"

namespace muster {
namespace {

// Beside the keys that ranks name; those cannot begin with a dot.
constexpr char kUniqueIdKey[] = ".unique_id";

using Unary = RendezvousService::Unary;

// A unary call that may wait long and notices when its caller goes away. Lives on the loop and is deleted there.
template <typename Response>
class WaitingCall : public grpc::ServerUnaryReactor {
 public:
  using Start = std::function<Rendezvous::WaiterId(Answer<Response> answer)>;

  WaitingCall(EventLoop* loop, Rendezvous* rendezvous, Response* response, Start start)
      : loop_(loop), rendezvous_(rendezvous), response_(response) {
    loop_->Post([this, start = std::move(start)] {
      waiter_ = start([this](absl::StatusOr<Response> result) {
        if (result.ok()) *response_ = *std::move(result);
        FinishNow(result.status());
      });
    });
  }

  void OnCancel() override {
    loop_->Post([this] {
      rendezvous_->Leave(waiter_);
      FinishNow(absl::CancelledError("the caller has gone"));
    });
  }

  void OnDone() override {
    loop_->Post([this] { delete this; });
  }

 private:
  void FinishNow(const absl::Status& status) {
    if (!std::exchange(finished_, true)) Finish(ToGrpcStatus(status));
  }

  EventLoop* const loop_;
  Rendezvous* const rendezvous_;
  Response* const response_;
  Rendezvous::WaiterId waiter_ = 0;
  bool finished_ = false;
};

template <typename Request>
absl::Status CheckName(const Request& request) {
  if (!request.name().empty() && request.name()[0] != '.') return absl::OkStatus();
  google::rpc::BadRequest::FieldViolation violation;
  violation.set_field("name");
  violation.set_description("must not be empty or begin with a dot");
  return BadRequestError({violation});
}

}  // namespace

Unary* RendezvousService::JoinGroup(Context* context, const v1::JoinGroupRequest* request,
                                    v1::JoinGroupResponse* response) {
  return new WaitingCall<v1::JoinGroupResponse>(loop_, rendezvous_, response,
                                                [this, request](Answer<v1::JoinGroupResponse> answer) {
                                                  return rendezvous_->JoinGroup(*request, std::move(answer));
                                                });
}

Unary* RendezvousService::PublishUniqueId(Context* context, const v1::PublishUniqueIdRequest* request,
                                          v1::PublishUniqueIdResponse* response) {
  return AnswerOnLoop(loop_, context, response, [this, request](Answer<v1::PublishUniqueIdResponse> answer) {
    const absl::Status set = rendezvous_->SetKey(request->key(), kUniqueIdKey, request->unique_id());
    answer(set.ok() ? absl::StatusOr<v1::PublishUniqueIdResponse>(v1::PublishUniqueIdResponse()) : set);
  });
}

Unary* RendezvousService::AwaitUniqueId(Context* context, const v1::AwaitUniqueIdRequest* request,
                                        v1::AwaitUniqueIdResponse* response) {
  return new WaitingCall<v1::AwaitUniqueIdResponse>(
      loop_, rendezvous_, response, [this, request](Answer<v1::AwaitUniqueIdResponse> answer) {
        return rendezvous_->AwaitKey(request->key(), kUniqueIdKey, FromProto(request->timeout()),
                                     [answer = std::move(answer)](absl::StatusOr<std::string> value) mutable {
                                       if (!value.ok()) return answer(value.status());
                                       v1::AwaitUniqueIdResponse found;
                                       found.set_unique_id(*value);
                                       answer(std::move(found));
                                     });
      });
}

Unary* RendezvousService::SetKey(Context* context, const v1::SetKeyRequest* request, v1::SetKeyResponse* response) {
  return AnswerOnLoop(loop_, context, response, [this, request](Answer<v1::SetKeyResponse> answer) {
    absl::Status set = CheckName(*request);
    if (set.ok()) set = rendezvous_->SetKey(request->key(), request->name(), request->value());
    answer(set.ok() ? absl::StatusOr<v1::SetKeyResponse>(v1::SetKeyResponse()) : set);
  });
}

Unary* RendezvousService::AwaitKey(Context* context, const v1::AwaitKeyRequest* request,
                                   v1::AwaitKeyResponse* response) {
  return new WaitingCall<v1::AwaitKeyResponse>(
      loop_, rendezvous_, response, [this, request](Answer<v1::AwaitKeyResponse> answer) -> Rendezvous::WaiterId {
        if (absl::Status named = CheckName(*request); !named.ok()) {
          answer(named);
          return 0;
        }
        return rendezvous_->AwaitKey(request->key(), request->name(), FromProto(request->timeout()),
                                     [answer = std::move(answer)](absl::StatusOr<std::string> value) mutable {
                                       if (!value.ok()) return answer(value.status());
                                       v1::AwaitKeyResponse found;
                                       found.set_value(*value);
                                       answer(std::move(found));
                                     });
      });
}

}  // namespace muster
