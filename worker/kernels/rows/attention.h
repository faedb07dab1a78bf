// The rows of one tile of attention scores (Dao et al. 2022, "FlashAttention", algorithms 1 and 4): softmax over keys
// that come tile by tile, and the gradient of the scores recomputed from the log-sum-exp. Row r is a query, column c a
// key. Plain C++17.
#pragma once

#include <cstdint>

#include "worker/kernels/formulas.h"

namespace muster::kernels {

// Keys that query r of a tile may see: columns up to that of the query itself, and not before that where its document
// starts.
struct VisibleKeys {
  int64_t diagonal;        // query r is key diagonal + r
  const int32_t* starts;   // (queries) positions within the sequence, or null: all begin at 0
  int64_t first_position;  // of column 0

  MUSTER_ROW_BODY int32_t last(int64_t r) const { return static_cast<int32_t>(diagonal + r); }
  MUSTER_ROW_BODY int32_t first(int64_t r) const {
    return starts == nullptr ? 0 : static_cast<int32_t>(starts[r] - first_position);
  }
};

// probabilities = exp(scale * score - top), 0 for keys that are hidden; top and total become those of all tiles so far;
// the weighted values summed so far are multiplied with `shrink`, which the next kernel applies.
template <typename T>
struct SoftmaxTileRows {
  static constexpr bool kColumnsIndependent = false;
  float* scores;  // overwritten
  T* probabilities;
  float* top;      // running maximum of the scaled scores
  float* total;    // running sum of the probabilities
  float* shrink;   // exp(top before - top now)
  int64_t stride;  // of scores and probabilities
  VisibleKeys visible;
  float scale;
  bool first_tile;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    float* const scores_row = scores + r * stride;
    const auto raw = row.load(scores_row);
    const int32_t first = visible.first(r);
    const int32_t last = visible.last(r);
    const float factor = scale;
    const float hidden = FloatOfBits(0xff800000u);  // -infinity
    const float tile_top =
        row.max([&](auto i) { return row.column(i) >= first && row.column(i) <= last ? factor * raw[i] : hidden; });
    const float before = first_tile ? hidden : top[r];
    const float now = Maximum(before, tile_top);
    row.store(scores_row, [&](auto i) {
      const float p = Exp(factor * raw[i] - now);
      return row.column(i) >= first && row.column(i) <= last ? p : 0.0f;
    });
    const auto weights = row.load(scores_row);
    const float tile_total = row.sum([&](auto i) { return weights[i]; });
    row.store(probabilities + r * stride, [&](auto i) { return weights[i]; });
    row.once([&] {
      // Both are -infinity when the query has seen no key yet.
      const float kept = first_tile ? 0.0f : before == now ? 1.0f : Exp(before - now);
      top[r] = now;
      total[r] = first_tile ? tile_total : total[r] * kept + tile_total;
      shrink[r] = kept;
    });
  }
};

// sums *= shrink, before the values of another tile are added.
struct ShrinkRows {
  static constexpr bool kColumnsIndependent = true;
  float* sums;
  const float* shrink;
  int64_t stride;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    const auto values = row.load(sums + r * stride);
    const float factor = shrink[r];
    row.store(sums + r * stride, [&](auto i) { return values[i] * factor; });
  }
};

// out = sums / total, lse = top + log(total).
template <typename T>
struct FinishAttentionRows {
  static constexpr bool kColumnsIndependent = false;
  const float* sums;
  const float* top;
  const float* total;
  T* out;
  float* lse;
  int64_t sums_stride, out_stride;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    const auto values = row.load(sums + r * sums_stride);
    const float inverse = 1.0f / total[r];
    row.store(out + r * out_stride, [&](auto i) { return values[i] * inverse; });
    row.once([&] { lse[r] = top[r] + Logarithm(total[r]); });
  }
};

// correction = sum(d_out * out), which the gradient of every score of the row subtracts.
template <typename T>
struct AttentionCorrectionRows {
  static constexpr bool kColumnsIndependent = false;
  const T* d_out;
  const T* out;
  float* correction;
  int64_t d_out_stride, out_stride;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    const auto d_outs = row.load(d_out + r * d_out_stride);
    const auto outs = row.load(out + r * out_stride);
    const float total = row.sum([&](auto i) { return d_outs[i] * outs[i]; });
    row.once([&] { correction[r] = total; });
  }
};

// probabilities = exp(scale * score - lse); d_scores = probabilities * (d_probabilities - correction) * scale; both 0
// for hidden keys.
template <typename T>
struct SoftmaxGradientRows {
  static constexpr bool kColumnsIndependent = true;
  float* scores;  // overwritten
  const float* d_probabilities;
  const float* lse;
  const float* correction;
  T* probabilities;
  T* d_scores;
  int64_t stride;  // of all four tiles
  VisibleKeys visible;
  float scale;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    float* const scores_row = scores + r * stride;
    const auto raw = row.load(scores_row);
    const auto d_weights = row.load(d_probabilities + r * stride);
    const int32_t first = visible.first(r);
    const int32_t last = visible.last(r);
    const float factor = scale;
    const float log_sum = lse[r];
    const float subtracted = correction[r];
    row.store(scores_row, [&](auto i) {
      const float p = Exp(factor * raw[i] - log_sum);
      return row.column(i) >= first && row.column(i) <= last ? p : 0.0f;
    });
    const auto weights = row.load(scores_row);
    row.store(probabilities + r * stride, [&](auto i) { return weights[i]; });
    row.store(d_scores + r * stride, [&](auto i) {
      const float d = weights[i] * (d_weights[i] - subtracted) * factor;
      return row.column(i) >= first && row.column(i) <= last ? d : 0.0f;
    });
  }
};

}  // namespace muster::kernels
