#include "worker/rank/rendezvous_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/proto_time.h"

namespace muster {
namespace {

// The coordinator answers a late call itself, with who is missing; ours only catches one that says nothing.
constexpr absl::Duration kAnswerMargin = absl::Seconds(2);
constexpr absl::Duration kBetweenTries = absl::Milliseconds(50);

// The job is not to blame for an attempt that is over: the coordinator has begun another.
absl::Status Translate(const absl::Status& status) {
  if (ErrorInfoOf(status).reason() != "STALE_ATTEMPT") return status;
  return absl::AbortedError(absl::StrCat("this attempt is over: ", status.message()));
}

}  // namespace

absl::Status RendezvousClient::Insist(absl::Duration timeout, const Call& call) const {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    const absl::Duration left = std::max(deadline - absl::Now(), absl::ZeroDuration());
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(left + kAnswerMargin));
    const absl::Status status = FromGrpcStatus(call(&context, left));
    if (!absl::IsUnavailable(status)) return Translate(status);
    if (absl::Now() + kBetweenTries > deadline) return status;
    absl::SleepFor(
        kBetweenTries);  // wait_for_ready does the waiting; this only guards against a server that refuses fast
  }
}

v1::GroupKey RendezvousClient::Key(absl::string_view group) const {
  v1::GroupKey key;
  key.set_job_id(identity_.job_id);
  key.set_attempt(identity_.attempt);
  key.set_group(std::string(group));
  return key;
}

v1::JoinGroupRequest RendezvousClient::JoinRequest(absl::string_view group) const {
  v1::JoinGroupRequest request;
  *request.mutable_key() = Key(group);
  request.set_rank(identity_.rank);
  request.set_size(identity_.size);
  request.set_ready(true);
  return request;
}

absl::StatusOr<std::vector<std::string>> RendezvousClient::Join(absl::string_view group, const std::string& address,
                                                                absl::Duration timeout) {
  v1::JoinGroupRequest request = JoinRequest(group);
  request.set_address(address);
  v1::JoinGroupResponse response;
  MUSTER_RETURN_IF_ERROR(Insist(timeout, [&](grpc::ClientContext* context, absl::Duration left) {
    *request.mutable_timeout() = ToProto(left);
    return stub_->JoinGroup(context, request, &response);
  }));
  return std::vector<std::string>(response.addresses().begin(), response.addresses().end());
}

absl::Status RendezvousClient::Vote(absl::string_view group, const absl::Status& mine, absl::Duration timeout) {
  v1::JoinGroupRequest request = JoinRequest(group);
  request.set_ready(mine.ok());
  request.set_reason(std::string(mine.message()));
  v1::JoinGroupResponse response;
  return Insist(timeout, [&](grpc::ClientContext* context, absl::Duration left) {
    *request.mutable_timeout() = ToProto(left);
    return stub_->JoinGroup(context, request, &response);
  });
}

absl::Status RendezvousClient::SetKey(absl::string_view group, absl::string_view name, absl::string_view value,
                                      absl::Duration timeout) {
  v1::SetKeyRequest request;
  *request.mutable_key() = Key(group);
  request.set_name(std::string(name));
  request.set_value(std::string(value));
  return Insist(timeout, [&](grpc::ClientContext* context, absl::Duration) {
    v1::SetKeyResponse response;
    return stub_->SetKey(context, request, &response);
  });
}

absl::StatusOr<std::string> RendezvousClient::AwaitKey(absl::string_view group, absl::string_view name,
                                                       absl::Duration timeout) {
  v1::AwaitKeyRequest request;
  *request.mutable_key() = Key(group);
  request.set_name(std::string(name));
  v1::AwaitKeyResponse response;
  MUSTER_RETURN_IF_ERROR(Insist(timeout, [&](grpc::ClientContext* context, absl::Duration left) {
    *request.mutable_timeout() = ToProto(left);
    return stub_->AwaitKey(context, request, &response);
  }));
  return response.value();
}

}  // namespace muster
