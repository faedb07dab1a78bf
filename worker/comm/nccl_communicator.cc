#include "worker/comm/nccl_communicator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/comm/nccl_world.h"
#include "worker/comm/transfer_error.h"

namespace muster {
namespace {

constexpr absl::Duration kPollInterval = absl::Microseconds(20);

bool OnHost(const void* data) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, data) != cudaSuccess) return true;
  return attributes.type == cudaMemoryTypeUnregistered || attributes.type == cudaMemoryTypeHost;
}

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<NcclWorld> world, std::string name, std::vector<int> world_ranks, int rank)
      : world_(std::move(world)), name_(std::move(name)), world_ranks_(std::move(world_ranks)), rank_(rank) {}

  ~NcclCommunicator() override {
    if (comm_ != nullptr && !open_.empty()) {
      world_->Fail(absl::CancelledError(absl::StrCat("group ", name_, " was destroyed with operations open")))
          .IgnoreError();
    }
    if (comm_ != nullptr) world_->Leave(comm_);
    for (const Operation& operation : open_) cudaEventDestroy(operation.done);
    if (compute_done_ != nullptr) cudaEventDestroy(compute_done_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
    if (staging_ != nullptr) cudaFree(staging_);
  }

  // Called once, before anything else.
  absl::Status Connect() {
    MUSTER_RETURN_IF_ERROR(FromCuda(cudaMalloc(&staging_, kNcclHostStagingBytes), "staging"));
    MUSTER_RETURN_IF_ERROR(FromCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"));
    MUSTER_RETURN_IF_ERROR(FromCuda(cudaEventCreateWithFlags(&compute_done_, cudaEventDisableTiming), "event"));
    MUSTER_ASSIGN_OR_RETURN(comm_, world_->Join(name_, size(), rank_));
    // NCCL connects lazily; only an operation proves that every peer is reached.
    return Barrier(*this);
  }

  const std::string& name() const override { return name_; }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world_ranks_.size()); }

  absl::StatusOr<Ticket> Exchange(absl::Span<const Transfer> transfers) override {
    CheckTransfers(*this, transfers);
    MUSTER_RETURN_IF_ERROR(world_->failure());
    Operation operation;
    operation.ticket = next_ticket_++;
    const absl::Status status = Start(transfers, operation);
    if (!status.ok()) return world_->Fail(status);
    open_.push_back(std::move(operation));
    return open_.back().ticket;
  }

  absl::Status Wait(Ticket ticket) override {
    MUSTER_RETURN_IF_ERROR(world_->failure());
    const auto operation =
        std::find_if(open_.begin(), open_.end(), [ticket](const Operation& open) { return open.ticket == ticket; });
    MUSTER_CHECK(operation != open_.end(), "group ", name_, ": ticket ", ticket, " is not open");
    const absl::Status status = AwaitEvent(*operation);
    if (!status.ok()) return world_->Fail(status);
    cudaEventDestroy(operation->done);
    open_.erase(operation);
    if (open_.empty()) staged_bytes_ = 0;
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Communicator>> Split(const std::vector<int>& ranks, const std::string& name) override {
    MUSTER_RETURN_IF_ERROR(world_->failure());
    MUSTER_ASSIGN_OR_RETURN(const int rank, RankAfterSplit(*this, ranks, name));
    std::vector<int> world_ranks;
    for (int member : ranks) world_ranks.push_back(world_ranks_[static_cast<size_t>(member)]);
    auto group = std::make_unique<NcclCommunicator>(world_, name, std::move(world_ranks), rank);
    MUSTER_RETURN_IF_ERROR(group->Connect());
    return std::unique_ptr<Communicator>(std::move(group));
  }

 private:
  struct Operation {
    Ticket ticket = 0;
    cudaEvent_t done = nullptr;
    std::vector<int> world_peers;
  };
  // A receive that goes on to the host when it has come.
  struct HostReceive {
    void* host = nullptr;
    const void* staged = nullptr;
    size_t bytes = 0;
  };

  std::string Describe(const Operation& operation) const {
    return absl::StrCat("group ", name_, ", operation #", operation.ticket, " with world ranks ",
                        absl::StrJoin(operation.world_peers, ","));
  }

  // Enqueues copies to staging, the transfers as one group, copies from staging, and the ticket's event.
  absl::Status Start(absl::Span<const Transfer> transfers, Operation& operation) {
    for (const Transfer& transfer : transfers) {
      operation.world_peers.push_back(world_ranks_[static_cast<size_t>(transfer.peer)]);
    }
    MUSTER_RETURN_IF_ERROR(FromCuda(cudaEventRecord(compute_done_, world_->compute_stream()), "event of the kernels"));
    MUSTER_RETURN_IF_ERROR(FromCuda(cudaStreamWaitEvent(stream_, compute_done_, 0), "wait for the kernels"));
    std::vector<HostReceive> host_receives;
    std::vector<void*> places;
    for (const Transfer& transfer : transfers) {
      MUSTER_ASSIGN_OR_RETURN(void* place, Stage(transfer, host_receives));
      places.push_back(place);
    }
    MUSTER_RETURN_IF_ERROR(StartGroup(transfers, places, operation));
    for (const HostReceive& receive : host_receives) {
      MUSTER_RETURN_IF_ERROR(
          FromCuda(cudaMemcpyAsync(receive.host, receive.staged, receive.bytes, cudaMemcpyDeviceToHost, stream_),
                   "copy to the host"));
    }
    MUSTER_RETURN_IF_ERROR(FromCuda(cudaEventCreateWithFlags(&operation.done, cudaEventDisableTiming), "event"));
    return FromCuda(cudaEventRecord(operation.done, stream_), "event of the operation");
  }

  // Where on the device the transfer's bytes are.
  absl::StatusOr<void*> Stage(const Transfer& transfer, std::vector<HostReceive>& host_receives) {
    if (transfer.bytes == 0 || !OnHost(transfer.data)) return transfer.data;
    if (staged_bytes_ + transfer.bytes > kNcclHostStagingBytes) {
      return absl::ResourceExhaustedError(absl::StrCat("group ", name_, ": ", transfer.bytes, " bytes of host memory, ",
                                                       kNcclHostStagingBytes - staged_bytes_, " of staging left"));
    }
    void* place = static_cast<char*>(staging_) + staged_bytes_;
    staged_bytes_ += (transfer.bytes + 15) / 16 * 16;
    const size_t bytes = static_cast<size_t>(transfer.bytes);
    if (transfer.sends()) {
      MUSTER_RETURN_IF_ERROR(FromCuda(cudaMemcpyAsync(place, transfer.data, bytes, cudaMemcpyHostToDevice, stream_),
                                      "copy from the host"));
    } else {
      host_receives.push_back({transfer.data, place, bytes});
    }
    return place;
  }

  absl::Status StartGroup(absl::Span<const Transfer> transfers, const std::vector<void*>& places,
                          const Operation& operation) {
    // Errors of the calls between come back from the group's end.
    ncclGroupStart();
    for (size_t i = 0; i < transfers.size(); ++i) {
      const size_t bytes = static_cast<size_t>(transfers[i].bytes);
      if (bytes == 0) continue;
      if (transfers[i].sends()) {
        ncclSend(places[i], bytes, ncclInt8, transfers[i].peer, comm_, stream_);
      } else {
        ncclRecv(places[i], bytes, ncclInt8, transfers[i].peer, comm_, stream_);
      }
    }
    const ncclResult_t result = ncclGroupEnd();
    if (result != ncclSuccess && result != ncclInProgress) {
      return absl::UnavailableError(absl::StrCat(Describe(operation), ": NCCL: ", ncclGetErrorString(result)));
    }
    // The kernels are on the stream only when NCCL is done with the start; an event recorded before would be true at
    // once.
    return world_->Settle(comm_, absl::Now() + world_->options().operation_deadline, Describe(operation));
  }

  absl::Status AwaitEvent(const Operation& operation) {
    const absl::Duration limit = world_->options().operation_deadline;
    const absl::Time deadline = absl::Now() + limit;
    for (;;) {
      const cudaError_t state = cudaEventQuery(operation.done);
      if (state == cudaSuccess) return absl::OkStatus();
      if (state != cudaErrorNotReady) return FromCuda(state, Describe(operation));
      MUSTER_RETURN_IF_ERROR(world_->Health(comm_, Describe(operation)));
      if (absl::Now() >= deadline) {
        return absl::DeadlineExceededError(
            absl::StrCat(Describe(operation), ": a peer did not take part within ", absl::FormatDuration(limit)));
      }
      absl::SleepFor(kPollInterval);
    }
  }

  const std::shared_ptr<NcclWorld> world_;
  const std::string name_;
  const std::vector<int> world_ranks_;
  const int rank_;

  // Constant after Connect.
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t compute_done_ = nullptr;
  void* staging_ = nullptr;

  Ticket next_ticket_ = 0;
  int64_t staged_bytes_ = 0;     // in use by open operations
  std::vector<Operation> open_;  // exchanged and not yet waited for
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> MakeNcclCommunicator(const NcclOptions& options, RendezvousStore& store) {
  MUSTER_CHECK(options.rank >= 0 && options.rank < options.size, "rank ", options.rank, " of ", options.size);
  auto world = std::make_shared<NcclWorld>(options, store);
  MUSTER_RETURN_IF_ERROR(world->SelectDevice());
  std::vector<int> ranks;
  for (int rank = 0; rank < options.size; ++rank) ranks.push_back(rank);
  auto communicator = std::make_unique<NcclCommunicator>(world, "world", ranks, options.rank);
  MUSTER_RETURN_IF_ERROR(communicator->Connect());
  return std::unique_ptr<Communicator>(std::move(communicator));
}

}  // namespace muster
