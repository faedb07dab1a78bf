#include "worker/tensor/cuda_device.h"

#include <nvtx3/nvToolsExt.h>

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/tensor/cpu_device.h"

namespace muster {

absl::Status CudaStatus(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(call, ": ", cudaGetErrorString(error), " (", cudaGetErrorName(error), ")"));
}

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Open(int ordinal) {
  int devices = 0;
  const cudaError_t counted = cudaGetDeviceCount(&devices);
  if (counted != cudaSuccess) {
    return absl::UnavailableError(absl::StrCat("no CUDA device: ", cudaGetErrorString(counted)));
  }
  if (ordinal < 0 || ordinal >= devices) {
    return absl::UnavailableError(absl::StrCat("no CUDA device ", ordinal, ": this host has ", devices));
  }
  MUSTER_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(ordinal), "cudaSetDevice"));
  cudaStream_t stream = nullptr;
  // Non-blocking: nothing on the default stream, of a library say, holds it up.
  MUSTER_RETURN_IF_ERROR(
      CudaStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"));
  return absl::WrapUnique(new CudaDevice(ordinal, stream, MakeCpuDevice()));
}

CudaDevice::CudaDevice(int ordinal, cudaStream_t stream, std::unique_ptr<Device> host)
    : ordinal_(ordinal), stream_(stream), host_(std::move(host)) {}

CudaDevice::~CudaDevice() { cudaStreamDestroy(stream_); }

void CudaDevice::Keep(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  absl::MutexLock lock(&mutex_);
  if (failure_.ok()) failure_ = CudaStatus(error, call);
}

absl::StatusOr<void*> CudaDevice::Allocate(MemorySpace space, int64_t bytes) {
  MUSTER_CHECK(bytes > 0, "an arena of ", bytes, " bytes");
  if (space == MemorySpace::kHost) return host_->Allocate(space, bytes);
  MUSTER_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(ordinal_), "cudaSetDevice"));
  void* block = nullptr;
  const bool pinned = space == MemorySpace::kPinned;
  const size_t size = static_cast<size_t>(bytes);
  const cudaError_t error = pinned ? cudaMallocHost(&block, size) : cudaMalloc(&block, size);
  if (error != cudaSuccess) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot allocate ", bytes, " bytes of ",
                                                     pinned ? "pinned host memory" : "device memory", ": ",
                                                     cudaGetErrorString(error)));
  }
  Keep(cudaMemset(block, 0, size), "cudaMemset");
  return block;
}

void CudaDevice::Free(MemorySpace space, void* block, int64_t bytes) {
  if (space == MemorySpace::kHost) return host_->Free(space, block, bytes);
  Keep(space == MemorySpace::kPinned ? cudaFreeHost(block) : cudaFree(block), "cudaFree");
}

void CudaDevice::CopyToDevice(void* device, const void* host, int64_t bytes) {
  Keep(cudaMemcpyAsync(device, host, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
}

void CudaDevice::CopyToHost(void* host, const void* device, int64_t bytes) {
  Keep(cudaMemcpyAsync(host, device, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
  Keep(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

absl::Status CudaDevice::Synchronize() {
  Keep(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  Keep(cudaGetLastError(), "an earlier kernel");
  absl::MutexLock lock(&mutex_);
  return std::exchange(failure_, absl::OkStatus());
}

void CudaDevice::BeginRange(const char* name) { nvtxRangePushA(name); }
void CudaDevice::EndRange() { nvtxRangePop(); }

}  // namespace muster
