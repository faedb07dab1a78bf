// Hashes that no library may change: initial weights, the order of samples and the numbers of communicator groups are
// made from them. Pure functions; any thread.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace muster {

// What SplitMix64 (Steele, Lea and Flood 2014) adds to its state for each number: 2^64 over the golden ratio.
inline constexpr uint64_t kSplitMixIncrement = 0x9e3779b97f4a7c15u;

// The finalizer of SplitMix64: mixes 64 bits so that every input bit moves every output bit.
uint64_t MixBits(uint64_t value);

// FNV-1a (Fowler, Noll, Vo), 64 bits.
uint64_t HashText(absl::string_view text);

}  // namespace muster
