// Attention's block kernels compiled for CUDA, and their launch.
#include <cstdint>

#include "worker/kernels/blocks/attention_choice.h"
#include "worker/kernels/cuda/attention_blocks.h"
#include "worker/kernels/cuda/stream.h"

namespace muster::kernels::cuda {
namespace {

// The policy of block kernels: a thread for every kBlockThreads-th item.
struct ThreadBlock {
  template <typename F>
  __device__ void for_each(int32_t count, F f) const {
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < count; i += kBlockThreads) f(i);
    __syncthreads();
  }
};

template <typename Kernel>
__global__ void __launch_bounds__(kBlockThreads) RunBlock(const Kernel kernel) {
  extern __shared__ float shared[];
  kernel(ThreadBlock(), shared, static_cast<int64_t>(blockIdx.x));
}

template <typename Kernel>
void LaunchBlocks(cudaStream_t stream, const Kernel& kernel) {
  const int bytes = static_cast<int>(kernel.shared_floats() * SizeOf(DType::kF32));
  CheckLaunch(cudaFuncSetAttribute(RunBlock<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
              "the shared memory of attention");
  RunBlock<Kernel>
      <<<static_cast<unsigned>(kernel.blocks()), kBlockThreads, static_cast<size_t>(bytes), stream>>>(kernel);
  CheckLaunch(cudaGetLastError(), "attention");
}

}  // namespace

void LaunchAttentionForward(cudaStream_t stream, const AttentionShape& shape, const AttentionInput& input,
                            const Tensor& out, const Tensor& lse) {
  RunForwardBlocks(shape, input, out, lse, [&](const auto& kernel) { LaunchBlocks(stream, kernel); });
}

void LaunchAttentionBackward(cudaStream_t stream, const AttentionShape& shape, const Tensor& d_out,
                             const AttentionInput& input, const Tensor& out, const Tensor& lse, const Tensor& d_qkv) {
  RunBackwardBlocks(shape, d_out, input, out, lse, d_qkv, [&](const auto& kernel) { LaunchBlocks(stream, kernel); });
}

}  // namespace muster::kernels::cuda
