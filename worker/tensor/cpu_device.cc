#include "worker/tensor/cpu_device.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/allocation_hook.h"
#include "common/base/check.h"

namespace muster {
namespace {

absl::Status Refused(int64_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot allocate ", bytes, " bytes of main memory: ", std::strerror(errno)));
}

class CpuDevice final : public Device {
 public:
  absl::StatusOr<void*> Allocate(MemorySpace, int64_t bytes) override {
    MUSTER_CHECK(bytes > 0, "an arena of ", bytes, " bytes");
    NamedAllocation named("arena");
    void* block = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return Refused(bytes);
    // Fewer misses in the translation cache; a machine without huge pages ignores it.
    madvise(block, static_cast<size_t>(bytes), MADV_HUGEPAGE);
    // EINVAL: a kernel before 5.14, on which pages come at their first use.
    if (madvise(block, static_cast<size_t>(bytes), MADV_POPULATE_WRITE) != 0 && errno != EINVAL) {
      absl::Status refused = Refused(bytes);
      munmap(block, static_cast<size_t>(bytes));
      return refused;
    }
    return block;
  }

  void Free(MemorySpace, void* block, int64_t bytes) override {
    MUSTER_CHECK(munmap(block, static_cast<size_t>(bytes)) == 0, "not a block of this device");
  }

  void CopyToDevice(void* device, const void* host, int64_t bytes) override {
    std::memcpy(device, host, static_cast<size_t>(bytes));
  }
  void CopyToHost(void* host, const void* device, int64_t bytes) override {
    std::memcpy(host, device, static_cast<size_t>(bytes));
  }

  absl::Status Synchronize() override { return absl::OkStatus(); }

  void BeginRange(const char*) override {}
  void EndRange() override {}
};

}  // namespace

std::unique_ptr<Device> MakeCpuDevice() { return std::make_unique<CpuDevice>(); }

}  // namespace muster
