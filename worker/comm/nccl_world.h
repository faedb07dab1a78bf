// What the NCCL communicators of one rank share: the device, the deadlines, the first failure, and how a group's
// ncclComm_t is made, watched and ended. Internal to nccl_communicator.cc; includes CUDA headers.
//
// Used by one thread at a time.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "worker/comm/nccl_communicator.h"
#include "worker/comm/rendezvous_store.h"

namespace muster {

// INTERNAL with CUDA's own words: a CUDA call fails because of a bug or a broken context, not because of a peer.
absl::Status FromCuda(cudaError_t error, absl::string_view what);

class NcclWorld {
 public:
  NcclWorld(const NcclOptions& options, RendezvousStore& store) : options_(options), store_(store) {}

  // Makes the device current for this thread. FAILED_PRECONDITION where there is none.
  absl::Status SelectDevice();

  // Joins the group of that name with the others of `size`, within the set-up deadline.
  absl::StatusOr<ncclComm_t> Join(const std::string& name, int size, int rank);

  // Ends a group's communicator in peace; no operation may be open. Does nothing after a failure.
  void Leave(ncclComm_t comm);

  // OK when NCCL has finished what was started on `comm`; UNAVAILABLE when a peer or a link failed; DEADLINE_EXCEEDED.
  absl::Status Settle(ncclComm_t comm, absl::Time deadline, absl::string_view what);
  // The state of `comm` now: OK also while something is in progress.
  absl::Status Health(ncclComm_t comm, absl::string_view what);

  // Aborts every communicator of the world, so that no kernel of NCCL waits for ever. Returns the first failure.
  absl::Status Fail(const absl::Status& cause);
  const absl::Status& failure() const { return failure_; }

  const NcclOptions& options() const { return options_; }
  cudaStream_t compute_stream() const { return static_cast<cudaStream_t>(options_.compute_stream); }

 private:
  const NcclOptions options_;
  RendezvousStore& store_;
  absl::Status failure_;
  std::set<ncclComm_t> comms_;
  std::set<std::string> names_;
};

}  // namespace muster
