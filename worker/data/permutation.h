// A keyed permutation of 0 .. size-1 that is computed, not stored: a Feistel network over the next even power of two,
// walked until it lands inside (cycle walking, Black and Rogaway 2002). Shuffles billions of windows without an index.
// Immutable; any thread may call.
#pragma once

#include <cstdint>

namespace muster {

class Permutation {
 public:
  // Different (seed, stream, epoch) give unrelated orders. REQUIRES: size >= 1.
  Permutation(int64_t size, uint64_t seed, uint64_t stream, uint64_t epoch);

  // Fewer than four rounds of the network on average. REQUIRES: 0 <= index < size.
  int64_t operator()(int64_t index) const;

 private:
  static constexpr int kRounds = 6;

  uint64_t Network(uint64_t value) const;

  uint64_t size_;
  int half_bits_;  // the network permutes 2 * half_bits_ bits
  uint64_t keys_[kRounds];
};

}  // namespace muster
