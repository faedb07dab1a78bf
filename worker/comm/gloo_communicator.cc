#include "worker/comm/gloo_communicator.h"

#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/comm/gloo_mesh.h"
#include "worker/comm/transfer_error.h"

namespace muster {
namespace {

// A slot is 64 bits: 24 name the group, 24 count the transfers of this direction between these two, and 16 stand for
// the size. So sides that disagree about the size never meet and are late: Gloo would write what fits, or end the
// process.
uint64_t Slot(uint64_t group_number, uint64_t sequence, int64_t bytes) {
  const uint64_t size_bits = (static_cast<uint64_t>(bytes) * 0x9e3779b97f4a7c15u) >> 48;
  return group_number << 40 | (sequence & 0xffffff) << 16 | size_bits;
}

class GlooCommunicator : public Communicator {
 public:
  GlooCommunicator(std::shared_ptr<GlooMesh> mesh, std::string name, uint64_t number, std::vector<int> world_ranks,
                   int rank, absl::Duration deadline)
      : mesh_(std::move(mesh)),
        name_(std::move(name)),
        number_(number),
        world_ranks_(std::move(world_ranks)),
        rank_(rank),
        deadline_(deadline),
        sent_(world_ranks_.size()),
        received_(world_ranks_.size()) {}

  // Operations that nobody waited for would write into memory that is gone.
  ~GlooCommunicator() override {
    if (open_.empty()) return;
    mesh_->Fail(absl::CancelledError(absl::StrCat("group ", name_, " was destroyed with operations open")))
        .IgnoreError();
  }

  const std::string& name() const override { return name_; }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world_ranks_.size()); }

  absl::StatusOr<Ticket> Exchange(absl::Span<const Transfer> transfers) override {
    CheckTransfers(*this, transfers);
    MUSTER_RETURN_IF_ERROR(mesh_->CheckAlive());
    Operation operation{next_ticket_++, {}};
    // Receives first: a send moves no byte before its receive is posted.
    for (const Transfer& transfer : transfers) {
      if (!transfer.sends() && transfer.bytes > 0) operation.posted.push_back(Place(operation.ticket, transfer));
    }
    for (const Transfer& transfer : transfers) {
      if (transfer.sends() && transfer.bytes > 0) operation.posted.push_back(Place(operation.ticket, transfer));
    }
    MUSTER_RETURN_IF_ERROR(mesh_->Post(operation.posted));
    open_.push_back(std::move(operation));
    return open_.back().ticket;
  }

  absl::Status Wait(Ticket ticket) override {
    MUSTER_RETURN_IF_ERROR(mesh_->CheckAlive());
    const auto operation =
        std::find_if(open_.begin(), open_.end(), [ticket](const Operation& open) { return open.ticket == ticket; });
    MUSTER_CHECK(operation != open_.end(), "group ", name_, ": ticket ", ticket, " is not open");
    const absl::Time deadline = absl::Now() + deadline_;
    for (const GlooMesh::Posting& posting : operation->posted) {
      MUSTER_RETURN_IF_ERROR(mesh_->Wait(posting.site, *posting.buffer, deadline, deadline_));
    }
    open_.erase(operation);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Communicator>> Split(const std::vector<int>& ranks, const std::string& name) override {
    MUSTER_RETURN_IF_ERROR(mesh_->CheckAlive());
    MUSTER_ASSIGN_OR_RETURN(const int rank, RankAfterSplit(*this, ranks, name));
    std::vector<int> world_ranks;
    for (int member : ranks) world_ranks.push_back(world_ranks_[static_cast<size_t>(member)]);
    MUSTER_ASSIGN_OR_RETURN(const uint64_t number, mesh_->NumberGroup(name, world_ranks));
    return std::unique_ptr<Communicator>(
        std::make_unique<GlooCommunicator>(mesh_, name, number, std::move(world_ranks), rank, deadline_));
  }

 private:
  struct Operation {
    Ticket ticket = 0;
    std::vector<GlooMesh::Posting> posted;
  };

  GlooMesh::Posting Place(Ticket ticket, const Transfer& transfer) {
    const size_t peer = static_cast<size_t>(transfer.peer);
    const uint64_t sequence = (transfer.sends() ? sent_ : received_)[peer]++;
    return {{name_, ticket, transfer, world_ranks_[peer]}, Slot(number_, sequence, transfer.bytes), nullptr};
  }

  const std::shared_ptr<GlooMesh> mesh_;
  const std::string name_;
  const uint64_t number_;
  const std::vector<int> world_ranks_;
  const int rank_;
  const absl::Duration deadline_;

  Ticket next_ticket_ = 0;
  std::vector<uint64_t> sent_;  // to each peer; empty transfers are not sent and do not count
  std::vector<uint64_t> received_;
  std::vector<Operation> open_;  // exchanged and not yet waited for
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> MakeGlooCommunicator(const GlooOptions& options, RendezvousStore& store) {
  const absl::Time start = absl::Now();
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<GlooMesh> mesh, GlooMesh::Connect(options, store));
  std::vector<int> ranks;
  for (int rank = 0; rank < options.size; ++rank) ranks.push_back(rank);
  {
    // A stopped process still connects, because its kernel does; only an operation proves that a peer runs.
    MUSTER_ASSIGN_OR_RETURN(const uint64_t number, mesh->NumberGroup("setup", ranks));
    const absl::Duration left = start + options.setup_deadline - absl::Now();
    GlooCommunicator setup(mesh, "setup", number, ranks, options.rank, left);
    MUSTER_RETURN_IF_ERROR(Barrier(setup));
  }
  MUSTER_ASSIGN_OR_RETURN(const uint64_t number, mesh->NumberGroup("world", ranks));
  return std::unique_ptr<Communicator>(
      std::make_unique<GlooCommunicator>(mesh, "world", number, ranks, options.rank, options.operation_deadline));
}

}  // namespace muster
