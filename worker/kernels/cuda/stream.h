// What launchers.cu needs of a context, without the headers that nvcc cannot read. Plain C++17.
#pragma once

#include <cuda_runtime_api.h>

namespace muster {

class KernelContext;

namespace kernels::cuda {

// The stream on which the context's kernels run. context.cc has it.
cudaStream_t StreamOf(KernelContext& context);

// Aborts with CUDA's words: a launch fails at once only when its shape is impossible, which is a bug. What fails later
// is found by Device::Synchronize.
void CheckLaunch(cudaError_t error, const char* what);

}  // namespace kernels::cuda
}  // namespace muster
