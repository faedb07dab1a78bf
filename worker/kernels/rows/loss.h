// Cross entropy of one position over the vocabulary. Plain C++17.
#pragma once

#include <cstdint>

#include "worker/kernels/formulas.h"

namespace muster::kernels {

// lse = log(sum(exp(logits))), loss = lse - logits[target]. Targets that are ignored have loss 0; those outside the
// vocabulary NaN.
template <typename T>
struct CrossEntropyForwardRows {
  static constexpr bool kColumnsIndependent = false;
  const T* logits;
  const int32_t* targets;
  float* losses;
  float* lse;
  int64_t logits_stride;
  int32_t ignored;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    const T* const logits_row = logits + r * logits_stride;
    const auto values = row.load(logits_row);
    const float top = row.max([&](auto i) { return values[i]; });
    const float total = row.sum([&](auto i) { return Exp(values[i] - top); });
    row.once([&] {
      const int32_t target = targets[r];
      const float log_sum = top + Logarithm(total);
      const bool inside = target >= 0 && target < row.cols();
      lse[r] = log_sum;
      losses[r] = target == ignored ? 0.0f : inside ? log_sum - ToFloat(logits_row[target]) : FloatOfBits(0x7fc00000u);
    });
  }
};

// In place: scale * (softmax - onehot), or zero where the target is ignored.
template <typename T>
struct CrossEntropyBackwardRows {
  static constexpr bool kColumnsIndependent = true;
  T* logits;
  const int32_t* targets;
  const float* lse;
  int64_t logits_stride;
  float scale;
  int32_t ignored;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    T* const logits_row = logits + r * logits_stride;
    const int32_t target = targets[r];
    if (target == ignored) {
      row.store(logits_row, [&](auto) { return 0.0f; });
      return;
    }
    const auto values = row.load(logits_row);
    const float log_sum = lse[r];
    const float s = scale;
    row.store(logits_row, [&](auto i) {
      const float hit = row.column(i) == target ? 1.0f : 0.0f;
      return s * (Exp(values[i] - log_sum) - hit);
    });
  }
};

}  // namespace muster::kernels
