// The seam to one accelerator, or to the processor: where memory comes from and how bytes move. Kernels are
// worker/kernels.
//
// A rank has one Device, made first and destroyed last; Arena and KernelContext keep a pointer to it. Calls come from
// the thread that trains, but for CopyToHost on a checkpoint's thread; implementations make that safe.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/plan/ledger.h"

namespace muster {

class Device {
 public:
  virtual ~Device() = default;

  // A zeroed block, aligned to kArenaAlignment. A rank allocates one for each space (Arena) and nothing else.
  // RESOURCE_EXHAUSTED says how many bytes of which space were refused.
  virtual absl::StatusOr<void*> Allocate(MemorySpace space, int64_t bytes) = 0;
  // `bytes` as given to Allocate.
  virtual void Free(MemorySpace space, void* block, int64_t bytes) = 0;

  // Between this device and host memory, in the order of the stream. CopyToHost returns when the bytes are there;
  // CopyToDevice may return before, and reads `host` until Synchronize when it lies in pinned memory.
  virtual void CopyToDevice(void* device, const void* host, int64_t bytes) = 0;
  virtual void CopyToHost(void* host, const void* device, int64_t bytes) = 0;

  // Waits for everything enqueued. INTERNAL with the device's own words when any of it failed.
  virtual absl::Status Synchronize() = 0;

  // Named spans in a profiler's timeline; they nest. Free when nobody profiles. Use ProfileRange.
  virtual void BeginRange(const char* name) = 0;
  virtual void EndRange() = 0;
};

// A span for as long as it lives.
class ProfileRange {
 public:
  ProfileRange(Device& device, const char* name) : device_(device) { device_.BeginRange(name); }
  ~ProfileRange() { device_.EndRange(); }
  ProfileRange(const ProfileRange&) = delete;
  ProfileRange& operator=(const ProfileRange&) = delete;

 private:
  Device& device_;
};

}  // namespace muster
