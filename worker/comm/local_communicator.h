// A communicator whose ranks are threads of one process: for tests and for `muster-rank --local`. A transfer is one
// memcpy from the sender's memory to the receiver's, made by whichever of the two comes second.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "worker/comm/communicator.h"

namespace muster {

class LocalChannel;
class LocalWorld;

// One rank. Used by its own thread only, but for Abort, which any thread may call. Unlike other back-ends it leaves no
// write behind: once a call has returned an error, no memory handed to it is touched again.
class LocalCommunicator : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<LocalWorld> world, std::shared_ptr<LocalChannel> channel, int rank);
  // A rank of the world that ends is gone: peers that still need it get UNAVAILABLE at once.
  ~LocalCommunicator() override;

  const std::string& name() const override;
  int rank() const override { return rank_; }
  int size() const override;
  absl::StatusOr<Ticket> Exchange(absl::Span<const Transfer> transfers) override;
  absl::Status Wait(Ticket ticket) override;
  absl::StatusOr<std::unique_ptr<Communicator>> Split(const std::vector<int>& ranks, const std::string& name) override;

  // As if this rank's process had been killed: every rank of the world gets UNAVAILABLE at once, blocked or not.
  void Abort(absl::string_view reason);

 private:
  struct Operation;

  const std::shared_ptr<LocalWorld> world_;
  const std::shared_ptr<LocalChannel> channel_;
  const int rank_;
  Ticket next_ticket_ = 0;
  std::vector<std::unique_ptr<Operation>> open_;  // exchanged and not yet waited for
};

// A world of `size` ranks, one element each. A Wait blocks for `deadline` at most.
std::vector<std::unique_ptr<LocalCommunicator>> MakeLocalGroup(int size, absl::Duration deadline);

}  // namespace muster
