// Root-mean-square norm (Zhang and Sennrich 2019), a row at a time, and its weight gradient. Plain C++17.
#pragma once

#include <cstdint>

#include "worker/kernels/formulas.h"
#include "worker/kernels/rows/store_or_add.h"

namespace muster::kernels {

// out = x * rstd * weight
template <typename T>
struct RmsNormForwardRows {
  static constexpr bool kColumnsIndependent = false;
  const T* x;
  const T* weight;
  T* out;
  float* rstd;
  int64_t x_stride, out_stride;
  float eps;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    const auto xs = row.load(x + r * x_stride);
    const auto weights = row.load(weight);
    const float count = static_cast<float>(row.cols());
    const float mean_square = row.sum([&](auto i) { return xs[i] * xs[i]; }) / count;
    const float s = 1.0f / SquareRoot(mean_square + eps);
    row.store(out + r * out_stride, [&](auto i) { return xs[i] * s * weights[i]; });
    row.once([&] { rstd[r] = s; });
  }
};

// With n = x * rstd and g = d_out * weight: d_x [+]= rstd * (g - n * average(g n)).
template <typename T>
struct RmsNormBackwardRows {
  static constexpr bool kColumnsIndependent = false;
  const T* d_out;
  const T* x;
  const T* weight;
  const float* rstd;
  T* d_x;
  int64_t d_out_stride, x_stride, d_x_stride;
  bool add;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    const auto d_outs = row.load(d_out + r * d_out_stride);
    const auto xs = row.load(x + r * x_stride);
    const auto weights = row.load(weight);
    const float count = static_cast<float>(row.cols());
    const float s = rstd[r];
    const float moment = row.sum([&](auto i) { return d_outs[i] * weights[i] * (xs[i] * s); }) / count;
    T* const d_x_row = d_x + r * d_x_stride;
    StoreOrAdd(row, d_x_row, add, [&](auto i) { return s * (d_outs[i] * weights[i] - xs[i] * s * moment); });
  }
};

// Block r of `blocks`: partials (blocks, cols) = sums over its rows of d_out * x * rstd (column_sums.h).
template <typename T>
struct RmsNormPartialRows {
  static constexpr bool kColumnsIndependent = true;
  const T* d_out;
  const T* x;
  const float* rstd;
  float* partials;
  int64_t d_out_stride, x_stride;
  int64_t rows, blocks;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    row.add_rows(rows * r / blocks, rows * (r + 1) / blocks, partials + r * row.cols(), false, [&](int64_t t) {
      const auto d_outs = row.load(d_out + t * d_out_stride);
      const auto xs = row.load(x + t * x_stride);
      const float s = rstd[t];
      return [=](auto i) { return d_outs[i] * (xs[i] * s); };
    });
  }
};

}  // namespace muster::kernels
