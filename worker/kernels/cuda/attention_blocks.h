// The launches of worker/kernels/blocks/attention.h, without the headers that nvcc cannot read. Plain C++17.
//
// Shapes as in kernels.h, checked by the caller. Heads so large that a block needs more shared memory than the device
// has abort.
#pragma once

#include <cuda_runtime_api.h>

#include "worker/kernels/kernels.h"

namespace muster::kernels::cuda {

void LaunchAttentionForward(cudaStream_t stream, const AttentionShape& shape, const AttentionInput& input,
                            const Tensor& out, const Tensor& lse);
void LaunchAttentionBackward(cudaStream_t stream, const AttentionShape& shape, const Tensor& d_out,
                             const AttentionInput& input, const Tensor& out, const Tensor& lse, const Tensor& d_qkv);

}  // namespace muster::kernels::cuda
