// Rotary position embedding (Su et al. 2021): one head of one row at a time. Plain C++17.
#pragma once

#include <cstdint>

#include "worker/kernels/formulas.h"

namespace muster::kernels {

// Row r is head r mod heads of row r / heads of x; column i turns the pair (i, half + i) of its components.
template <typename T>
struct RopeRows {
  static constexpr bool kColumnsIndependent = true;
  const float* table;  // (sequence, 2 half): cosines, then sines
  T* x;
  int64_t heads, sequence, half, x_stride;
  float direction;  // 1, or -1 to turn back

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    const int64_t t = r / heads;
    T* const lower = x + t * x_stride + r % heads * 2 * half;
    T* const upper = lower + half;
    const float* const turn = table + t % sequence * 2 * half;
    const auto lowers = row.load(lower);
    const auto uppers = row.load(upper);
    const auto cosines = row.load(turn);
    const auto sines = row.load(turn + half);
    const float d = direction;
    row.store_two(lower, upper, [&](auto i) {
      const float sine = d * sines[i];
      return Two{lowers[i] * cosines[i] - uppers[i] * sine, uppers[i] * cosines[i] + lowers[i] * sine};
    });
  }
};

}  // namespace muster::kernels
