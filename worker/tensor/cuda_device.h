// One GPU as a device: a stream on which everything is enqueued, memory by cudaMalloc, pinned host memory.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "worker/tensor/device.h"

namespace muster {

// INTERNAL with the name of the call and CUDA's words for the error.
absl::Status CudaStatus(cudaError_t error, const char* call);

// For the thread that trains, except that CopyToHost may run beside it on another.
class CudaDevice final : public Device {
 public:
  // Makes the context of the device with that ordinal, which takes up to half a second, and a stream of its own.
  // UNAVAILABLE when there is no such device or the driver is missing.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Open(int ordinal);
  ~CudaDevice() override;

  // kDevice: memory of the GPU. kPinned: host memory that copies reach without staging. kHost: pages of the host.
  absl::StatusOr<void*> Allocate(MemorySpace space, int64_t bytes) override;
  void Free(MemorySpace space, void* block, int64_t bytes) override;
  void CopyToDevice(void* device, const void* host, int64_t bytes) override;
  void CopyToHost(void* host, const void* device, int64_t bytes) override;
  absl::Status Synchronize() override;
  // NVTX ranges, which Nsight Systems shows.
  void BeginRange(const char* name) override;
  void EndRange() override;

  cudaStream_t stream() const { return stream_; }

 private:
  CudaDevice(int ordinal, cudaStream_t stream, std::unique_ptr<Device> host);
  // Calls that return nothing keep their error for Synchronize: on a stream, an error is found later than it is made
  // anyway.
  void Keep(cudaError_t error, const char* call);

  const int ordinal_;
  const cudaStream_t stream_;
  const std::unique_ptr<Device> host_;  // for kHost

  absl::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // the first error kept
};

}  // namespace muster
