// A communicator for ranks that each have a GPU, by NCCL 2.28. No CUDA header here, so that a rank's main includes it
// on any build.
//
// Every group is an NCCL communicator of its own, from a unique id that the group's rank 0 publishes in the rendezvous
// store: only a group's members take part in making it, which ncclCommSplit does not allow.
//
// Memory given to Exchange lies on the device, or on the host: then it is staged through a small block of device
// memory, which is for what collectives.cc moves (sums, barriers) and not for tensors.
//
// NCCL runs a group's operations in the order in which they were started. So an Exchange that waits for its peer holds
// back the later ones of its group: where both directions of a pipeline are open at once, each has its own group.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/comm/communicator.h"
#include "worker/comm/rendezvous_store.h"

namespace muster {

struct NcclOptions {
  int rank = 0;
  int size = 1;

  // The CUDA ordinal of this rank's GPU. Two ranks of a world never share one: NCCL refuses it.
  int device = 0;

  // The cudaStream_t on which kernels write what is sent and read what was received; null is CUDA's default stream.
  // Transfers begin when what was enqueued on it before the Exchange is done.
  void* compute_stream = nullptr;

  // Until all ranks have met, for the world and again for each Split. NCCL's own set-up of eight GPUs takes seconds.
  absl::Duration setup_deadline = absl::Seconds(120);

  // The longest that one Wait blocks.
  absl::Duration operation_deadline = absl::Seconds(60);
};

// Device memory of each group for transfers from and to the host; all open ones of a group must fit. Outside the arena,
// in the ledger's allowance for NCCL.
inline constexpr int64_t kNcclHostStagingBytes = int64_t{1} << 20;

// The world of one attempt. Blocks until every rank has called it, setup_deadline at most. `store` must outlive the
// world and its groups, as each Split uses it. FAILED_PRECONDITION where the device is not there; else as Communicator
// says.
absl::StatusOr<std::unique_ptr<Communicator>> MakeNcclCommunicator(const NcclOptions& options, RendezvousStore& store);

}  // namespace muster
