#include "worker/tensor/arena.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"

#if defined(__SANITIZE_ADDRESS__)
#define MUSTER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MUSTER_ASAN 1
#endif
#endif
#ifdef MUSTER_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace muster {

absl::StatusOr<Arena> Arena::Create(Device& device, MemorySpace space, int64_t bytes) {
  MUSTER_CHECK(bytes >= 0);
  void* block = nullptr;
  if (bytes > 0) {
    MUSTER_ASSIGN_OR_RETURN(block, device.Allocate(space, bytes));
  }
  return Arena(device, space, block, bytes);
}

Arena::Arena(Arena&& other) noexcept
    : device_(other.device_),
      space_(other.space_),
      block_(std::exchange(other.block_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      used_bytes_(std::exchange(other.used_bytes_, 0)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  if (this == &other) return *this;
  Release();
  device_ = other.device_;
  space_ = other.space_;
  block_ = std::exchange(other.block_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  used_bytes_ = std::exchange(other.used_bytes_, 0);
  return *this;
}

Arena::~Arena() { Release(); }

void Arena::Release() {
  if (block_ == nullptr) return;
  Unpoison(0, bytes_);  // the addresses may be another's next
  device_->Free(space_, block_, bytes_);
  block_ = nullptr;
}

Tensor Arena::Bind(int64_t offset_bytes, DType dtype, const std::vector<int64_t>& dims) {
  MUSTER_CHECK(!dims.empty() && dims.size() <= 4, dims.size(), " dimensions");
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.rank = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), tensor.dims.begin());
  tensor.row_stride = dims.back();
  const int64_t end_bytes = offset_bytes + tensor.bytes();
  MUSTER_CHECK(offset_bytes >= 0 && offset_bytes % SizeOf(dtype) == 0, "offset ", offset_bytes);
  MUSTER_CHECK(end_bytes <= bytes_, "a tensor that ends at byte ", end_bytes, " of an arena of ", bytes_);
  tensor.data = static_cast<char*>(block_) + offset_bytes;
  const int64_t rounded = (end_bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  used_bytes_ = std::max(used_bytes_, std::min(rounded, bytes_));
  return tensor;
}

void Arena::Poison([[maybe_unused]] int64_t offset_bytes, [[maybe_unused]] int64_t bytes) {
#ifdef MUSTER_ASAN
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(block_) + offset_bytes, static_cast<size_t>(bytes));
#endif
}

void Arena::Unpoison([[maybe_unused]] int64_t offset_bytes, [[maybe_unused]] int64_t bytes) {
#ifdef MUSTER_ASAN
  ASAN_UNPOISON_MEMORY_REGION(static_cast<char*>(block_) + offset_bytes, static_cast<size_t>(bytes));
#endif
}

}  // namespace muster
