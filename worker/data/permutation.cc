#include "worker/data/permutation.h"

#include "common/base/check.h"
#include "common/base/hash.h"

namespace muster {

Permutation::Permutation(int64_t size, uint64_t seed, uint64_t stream, uint64_t epoch)
    : size_(static_cast<uint64_t>(size)), half_bits_(1) {
  MUSTER_CHECK(size >= 1, size);
  while (2 * half_bits_ < 63 && (uint64_t{1} << (2 * half_bits_)) < size_) ++half_bits_;
  // The increment keeps neighbouring seeds, streams and epochs apart.
  uint64_t state = MixBits(seed + kSplitMixIncrement);
  state = MixBits(state ^ (stream + 2 * kSplitMixIncrement));
  state = MixBits(state ^ (epoch + 3 * kSplitMixIncrement));
  for (uint64_t& key : keys_) {
    state += kSplitMixIncrement;
    key = MixBits(state);
  }
}

uint64_t Permutation::Network(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (uint64_t key : keys_) {
    const uint64_t mixed = left ^ (MixBits(right ^ key) & mask);
    left = right;
    right = mixed;
  }
  return left << half_bits_ | right;
}

int64_t Permutation::operator()(int64_t index) const {
  uint64_t value = static_cast<uint64_t>(index);
  MUSTER_CHECK(value < size_, index, " of ", size_);
  do {
    value = Network(value);
  } while (value >= size_);
  return static_cast<int64_t>(value);
}

}  // namespace muster
