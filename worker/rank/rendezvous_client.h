// The coordinator's RendezvousService as a rank uses it: calls that are tried again while the coordinator is away, up
// to one deadline.
//
// Thread-safe; owned by the rank.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/v1/rendezvous.grpc.pb.h"
#include "worker/comm/rendezvous_store.h"

namespace grpc {
class ClientContext;
class Status;
}  // namespace grpc

namespace muster {

struct RankIdentity {
  std::string job_id;
  int64_t attempt = 0;
  int64_t rank = 0;
  int64_t size = 1;  // ranks of the job
};

class RendezvousClient {
 public:
  // The stub outlives this.
  RendezvousClient(v1::RendezvousService::StubInterface* stub, RankIdentity identity)
      : stub_(stub), identity_(std::move(identity)) {}

  // Says that this rank is here and waits for all. ABORTED when another rank has voted against, or this attempt is
  // over; DEADLINE_EXCEEDED when somebody is missing. Addresses of all, in rank order.
  absl::StatusOr<std::vector<std::string>> Join(absl::string_view group, const std::string& address,
                                                absl::Duration timeout);

  // Votes in the group: every rank's call fails when one has voted against it.
  absl::Status Vote(absl::string_view group, const absl::Status& mine, absl::Duration timeout);

  // As RendezvousStore has it.
  absl::Status SetKey(absl::string_view group, absl::string_view name, absl::string_view value, absl::Duration timeout);
  absl::StatusOr<std::string> AwaitKey(absl::string_view group, absl::string_view name, absl::Duration timeout);

 private:
  using Call = std::function<grpc::Status(grpc::ClientContext* context, absl::Duration timeout)>;

  // Repeats a call that could not reach the coordinator until `timeout` has passed. Each call gets what is left.
  absl::Status Insist(absl::Duration timeout, const Call& call) const;
  v1::GroupKey Key(absl::string_view group) const;
  v1::JoinGroupRequest JoinRequest(absl::string_view group) const;

  v1::RendezvousService::StubInterface* const stub_;
  const RankIdentity identity_;
};

// One group's keys as the store that comm's bootstrap needs. The client outlives this.
class GrpcRendezvousStore : public RendezvousStore {
 public:
  GrpcRendezvousStore(RendezvousClient* client, std::string group, absl::Duration set_timeout)
      : client_(client), group_(std::move(group)), set_timeout_(set_timeout) {}

  absl::Status Set(absl::string_view key, absl::string_view value) override {
    return client_->SetKey(group_, key, value, set_timeout_);
  }
  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration timeout) override {
    return client_->AwaitKey(group_, key, timeout);
  }

 private:
  RendezvousClient* const client_;
  const std::string group_;
  const absl::Duration set_timeout_;
};

}  // namespace muster
