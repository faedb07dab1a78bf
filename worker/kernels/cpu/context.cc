#include "worker/kernels/context.h"

#include <oneapi/dnnl/dnnl.h>

#include <cstdlib>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "worker/kernels/cpu/backend.h"
#include "worker/kernels/cpu/isa.h"
#include "worker/tensor/cpu_device.h"

namespace muster {

std::map<std::string, std::string> KernelLibraries() {
  const dnnl_version_t* onednn = dnnl_version();
  const char* limit = std::getenv("DNNL_MAX_CPU_ISA");
  return {{"onednn", absl::StrCat(onednn->major, ".", onednn->minor, ".", onednn->patch)},
          {"instruction_set_limit", limit == nullptr ? "" : limit}};
}

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(int) { return MakeCpuDevice(); }

KernelContext::Backend::Backend(const kernels::RowTable& rows, int threads, void* workspace) : rows_(rows) {
  char* const scratch = static_cast<char*>(workspace);
  char* const widening = scratch + threads * kMatMulScratchBytesPerThread;
  for (int thread = 0; thread < threads; ++thread) {
    tile_matmuls_.push_back(std::make_unique<kernels::OneDnnMatMul>(
        rows, 1, scratch + thread * kMatMulScratchBytesPerThread, widening + thread * kWidenBytesPerThread));
  }
  if (threads > 1) threaded_matmul_ = std::make_unique<kernels::OneDnnMatMul>(rows, threads, scratch, widening);
  matmul_ = threads > 1 ? threaded_matmul_.get() : tile_matmuls_.front().get();
}

absl::StatusOr<std::unique_ptr<KernelContext>> KernelContext::Create(Device& device, const KernelOptions& options,
                                                                     const Tensor& workspace) {
  MUSTER_CHECK(options.threads >= 1, options.threads, " threads");
  MUSTER_CHECK(workspace.bytes() >= KernelWorkspaceBytes(options.threads), "a workspace of ", workspace.bytes(),
               " bytes");
  const kernels::RowTable& rows = *kernels::SupportedRowTables().back();
  auto backend = std::make_unique<Backend>(rows, options.threads, workspace.data);
  return absl::WrapUnique(new KernelContext(device, options, std::move(backend)));
}

KernelContext::KernelContext(Device& device, const KernelOptions& options, std::unique_ptr<Backend> backend)
    : device_(device), options_(options), backend_(std::move(backend)) {}

KernelContext::~KernelContext() = default;

}  // namespace muster
