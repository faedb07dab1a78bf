// Cross entropy of one position over the vocabulary. Plain C++17.
#pragma once

#include <cstdint>

#include "worker/kernels/formulas.h"

namespace muster::kernels {

// stats (rows, 3): the largest logit of the row, the sum of exp(logit - largest), and the logit of class `target`,
// column target - first_class, or 0 when it is not one of the row's. With `empty` the row has no classes, and its
// columns are of no account.
template <typename T>
struct CrossEntropyStatisticsRows {
  static constexpr bool kColumnsIndependent = false;
  const T* logits;
  const int32_t* targets;
  float* stats;
  int64_t logits_stride;
  int32_t first_class;
  bool empty;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    const T* const logits_row = logits + r * logits_stride;
    const auto values = row.load(logits_row);
    const float top = row.max([&](auto i) { return values[i]; });
    const float total = row.sum([&](auto i) { return Exp(values[i] - top); });
    row.once([&] {
      const int32_t column = targets[r] - first_class;
      const bool here = !empty && column >= 0 && column < row.cols();
      stats[3 * r] = empty ? FloatOfBits(0xff800000u) : top;  // -infinity
      stats[3 * r + 1] = empty ? 0.0f : total;
      stats[3 * r + 2] = here ? ToFloat(logits_row[column]) : 0.0f;
    });
  }
};

// Of stats (parts, rows, 3) in order: lse = log(sum(exp(logits))), loss = lse - the target's logit. Targets that are
// ignored have loss 0; those outside the vocabulary NaN. The columns are of no account.
struct CrossEntropyFromStatisticsRows {
  static constexpr bool kColumnsIndependent = false;
  const float* stats;
  const int32_t* targets;
  float* losses;
  float* lse;
  int64_t parts, part_stride;
  int32_t vocab, ignored;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    row.once([&] {
      const float* const own = stats + 3 * r;
      float top = own[0];
      for (int64_t part = 1; part < parts; ++part) top = Maximum(own[part * part_stride], top);
      float total = 0;
      float hit = 0;
      for (int64_t part = 0; part < parts; ++part) {
        const float* const from = own + part * part_stride;
        total += from[0] == top ? from[1] : from[1] * Exp(from[0] - top);
        hit += from[2];
      }
      const int32_t target = targets[r];
      const float log_sum = top + Logarithm(total);
      const bool inside = target >= 0 && target < vocab;
      lse[r] = log_sum;
      losses[r] = target == ignored ? 0.0f : inside ? log_sum - hit : FloatOfBits(0x7fc00000u);
    });
  }
};

// In place: scale * (softmax - onehot) in the first `valid` columns, zero in the others and where the target is
// ignored.
template <typename T>
struct CrossEntropyBackwardRows {
  static constexpr bool kColumnsIndependent = true;
  T* logits;
  const int32_t* targets;
  const float* lse;
  int64_t logits_stride;
  float scale;
  int32_t first_class, valid, ignored;

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
    const int32_t column = target - first_class;
    const int32_t end = valid;
    row.store(logits_row, [&](auto i) {
      const float hit = row.column(i) == column ? 1.0f : 0.0f;
      const float gradient = s * (Exp(values[i] - log_sum) - hit);
      return row.column(i) < end ? gradient : 0.0f;
    });
  }
};

}  // namespace muster::kernels
