#include "worker/kernels/context.h"

#include <utility>

#include "absl/memory/memory.h"
#include "common/base/check.h"
#include "worker/kernels/cpu/backend.h"
#include "worker/tensor/cpu_device.h"

namespace muster {

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(int) { return MakeCpuDevice(); }

absl::StatusOr<std::unique_ptr<KernelContext>> KernelContext::Create(Device& device, const KernelOptions& options,
                                                                     const Tensor& workspace) {
  MUSTER_CHECK(options.threads >= 1, options.threads, " threads");
  MUSTER_CHECK(workspace.bytes() >= KernelWorkspaceBytes(options.threads), "a workspace of ", workspace.bytes(),
               " bytes");
  auto backend = std::make_unique<Backend>(options, workspace);
  return absl::WrapUnique(new KernelContext(device, options, std::move(backend)));
}

KernelContext::KernelContext(Device& device, const KernelOptions& options, std::unique_ptr<Backend> backend)
    : device_(device), options_(options), backend_(std::move(backend)) {}

KernelContext::~KernelContext() = default;

}  // namespace muster
