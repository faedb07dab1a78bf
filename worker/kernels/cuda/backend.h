// What a KernelContext holds when the kernels run on a GPU.
//
// Owned by the context; used by the files of this folder only.
#pragma once

#include <memory>
#include <utility>

#include "worker/kernels/context.h"
#include "worker/kernels/cuda/matmul_cublas.h"

namespace muster {

class KernelContext::Backend {
 public:
  Backend(cudaStream_t stream, std::unique_ptr<kernels::cuda::CublasMatMul> matmul, float* reduction_scratch)
      : stream_(stream), matmul_(std::move(matmul)), reduction_scratch_(reduction_scratch) {}

  cudaStream_t stream() const { return stream_; }
  kernels::cuda::CublasMatMul& matmul() { return *matmul_; }
  float* reduction_scratch() const { return reduction_scratch_; }

 private:
  const cudaStream_t stream_;
  const std::unique_ptr<kernels::cuda::CublasMatMul> matmul_;
  float* const reduction_scratch_;  // of the device
};

}  // namespace muster
