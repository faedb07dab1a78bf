// One block of memory of one space, from which all tensors of a rank are bound at the offsets that common/plan/arena.h
// chose.
//
// Owned by the rank's engine, destroyed before its Device. Binding is for one thread, at start; the tensors may then be
// used from any.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/ledger.h"
#include "worker/tensor/device.h"
#include "worker/tensor/view.h"

namespace muster {

class Arena {
 public:
  // RESOURCE_EXHAUSTED when the device refuses. `device` must outlive the arena. Zero bytes make an empty arena.
  static absl::StatusOr<Arena> Create(Device& device, MemorySpace space, int64_t bytes);

  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  // A dense tensor at `offset` bytes. Binding one place twice, or two tensors that overlap, is allowed: lifetimes are
  // the planner's concern. REQUIRES: offset is a multiple of the element size; the tensor ends within the arena; 1 to 4
  // dimensions.
  Tensor Bind(int64_t offset_bytes, DType dtype, const std::vector<int64_t>& dims);

  MemorySpace space() const { return space_; }
  int64_t bytes() const { return bytes_; }
  // The end of the highest tensor bound so far, rounded up to kArenaAlignment: equal to bytes() when the plan is used
  // whole.
  int64_t used_bytes() const { return used_bytes_; }

  // In a build with AddressSanitizer, any access to the bytes is an error until Unpoison; otherwise nothing. For
  // tensors outside their planned lifetimes. REQUIRES: offset and bytes multiples of 8.
  void Poison(int64_t offset_bytes, int64_t bytes);
  void Unpoison(int64_t offset_bytes, int64_t bytes);

 private:
  Arena(Device& device, MemorySpace space, void* block, int64_t bytes)
      : device_(&device), space_(space), block_(block), bytes_(bytes) {}
  void Release();

  Device* device_;
  MemorySpace space_;
  void* block_;  // null after a move
  int64_t bytes_;
  int64_t used_bytes_ = 0;
};

}  // namespace muster
