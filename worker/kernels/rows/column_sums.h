// Sums down the columns of a matrix: gradients of biases and norms, of embeddings, and of buffers from several ranks.
//
// The rows are cut into fixed blocks, whose sums are then added in order, so that the result depends on the shape and
// neither on threads nor on the size of the device. "Row r" of these kernels is a block. Plain C++17.
#pragma once

#include <cstdint>

#include "worker/kernels/formulas.h"

namespace muster::kernels {

// Block r of `blocks`: partials (blocks, cols) = sums of d_out over its rows.
template <typename T>
struct BiasPartialRows {
  static constexpr bool kColumnsIndependent = true;
  const T* d_out;
  float* partials;
  int64_t d_out_stride, partials_stride;
  int64_t rows, blocks;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    row.add_rows(rows * r / blocks, rows * (r + 1) / blocks, partials + r * partials_stride, false, [&](int64_t t) {
      const auto values = row.load(d_out + t * d_out_stride);
      return [=](auto i) { return values[i]; };
    });
  }
};

// Block r: partials (blocks, 2, cols) = sums of d_out * normalised x, then of d_out.
template <typename T>
struct LayerNormPartialRows {
  static constexpr bool kColumnsIndependent = true;
  const T* d_out;
  const T* x;
  const float* mean;
  const float* rstd;
  float* partials;
  int64_t d_out_stride, x_stride;
  int64_t rows, blocks;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    const int64_t first = rows * r / blocks;
    const int64_t last = rows * (r + 1) / blocks;
    float* const weight_sums = partials + 2 * r * row.cols();
    row.add_rows(first, last, weight_sums, false, [&](int64_t t) {
      const auto d_outs = row.load(d_out + t * d_out_stride);
      const auto xs = row.load(x + t * x_stride);
      const float m = mean[t];
      const float s = rstd[t];
      return [=](auto i) { return d_outs[i] * ((xs[i] - m) * s); };
    });
    row.add_rows(first, last, weight_sums + row.cols(), false, [&](int64_t t) {
      const auto d_outs = row.load(d_out + t * d_out_stride);
      return [=](auto i) { return d_outs[i]; };
    });
  }
};

// One row: out [+]= parts (count, cols), added in order.
struct OrderedSumRows {
  static constexpr bool kColumnsIndependent = true;
  const float* parts;
  float* out;
  int64_t parts_stride;
  int64_t count;
  bool accumulate;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t) const {
    if (!accumulate) {
      const auto values = row.load(parts);
      row.store(out, [&](auto i) { return values[i]; });
    }
    row.add_rows(accumulate ? 0 : 1, count, out, true, [&](int64_t part) {
      const auto values = row.load(parts + part * parts_stride);
      return [=](auto i) { return values[i]; };
    });
  }
};

// One row: out = the sum of parts (count, cols) in order, rounded once. out may be any one of them.
template <typename T>
struct SumPartsRows {
  static constexpr bool kColumnsIndependent = true;
  const T* parts;
  T* out;
  int64_t parts_stride;
  int64_t count;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t) const {
    row.store_sum(out, count, [&](int64_t part) {
      const auto values = row.load(parts + part * parts_stride);
      return [=](auto i) { return values[i]; };
    });
  }
};

// Row r of the result is a sum of squares, or of values, over kSumBlock elements.
template <bool kSquares>
struct BlockSumRows {
  static constexpr bool kColumnsIndependent = false;
  const float* values;
  float* sums;
  int64_t values_stride;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    const auto block = row.load(values + r * values_stride);
    const float total = row.sum([&](auto i) { return kSquares ? block[i] * block[i] : block[i]; });
    row.once([&] { sums[r] = total; });
  }
};

}  // namespace muster::kernels
