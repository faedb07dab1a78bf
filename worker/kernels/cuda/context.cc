#include "worker/kernels/context.h"

#include <cublasLt.h>

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/kernels/cuda/backend.h"
#include "worker/kernels/cuda/stream.h"
#include "worker/kernels/launch.h"
#include "worker/tensor/cuda_device.h"

namespace muster {

std::map<std::string, std::string> KernelLibraries() { return {{"cublaslt", absl::StrCat(cublasLtGetVersion())}}; }

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(int ordinal) { return CudaDevice::Open(ordinal); }

absl::StatusOr<std::unique_ptr<KernelContext>> KernelContext::Create(Device& device, const KernelOptions& options,
                                                                     const Tensor& workspace) {
  MUSTER_CHECK(workspace.bytes() >= KernelWorkspaceBytes(1), "a workspace of ", workspace.bytes(), " bytes");
  auto* const cuda_device = dynamic_cast<CudaDevice*>(&device);
  MUSTER_CHECK(cuda_device != nullptr, "CUDA kernels on a device that is not CUDA's");
  // The workspace: cuBLASLt's scratch, then what the processor would widen operands in, of which sums take the
  // beginning.
  char* const scratch = workspace.as<char>();
  static_assert(kWidenBytesPerThread >= kernels::kReductionBlocks * 4);
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<kernels::cuda::CublasMatMul> matmul,
                          kernels::cuda::CublasMatMul::Create(cuda_device->stream(), scratch));
  auto backend = std::make_unique<Backend>(cuda_device->stream(), std::move(matmul),
                                           reinterpret_cast<float*>(scratch + kMatMulScratchBytesPerThread));
  return absl::WrapUnique(new KernelContext(device, options, std::move(backend)));
}

KernelContext::KernelContext(Device& device, const KernelOptions& options, std::unique_ptr<Backend> backend)
    : device_(device), options_(options), backend_(std::move(backend)) {}

KernelContext::~KernelContext() = default;

namespace kernels {

float* ReductionScratch(KernelContext& context) { return context.backend().reduction_scratch(); }

namespace cuda {

cudaStream_t StreamOf(KernelContext& context) { return context.backend().stream(); }

void CheckLaunch(cudaError_t error, const char* what) {
  MUSTER_CHECK(error == cudaSuccess, what, ": ", cudaGetErrorString(error));
}

}  // namespace cuda
}  // namespace kernels
}  // namespace muster
