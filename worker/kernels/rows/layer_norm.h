// Layer norm (Ba, Kiros and Hinton 2016), a row at a time; its weight gradients are in column_sums.h. Plain C++17.
#pragma once

#include <cstdint>

#include "worker/kernels/formulas.h"
#include "worker/kernels/rows/store_or_add.h"

namespace muster::kernels {

// out = (x - mean) * rstd * weight + bias, the variance of the row taken around its mean in a second pass.
template <typename T>
struct LayerNormForwardRows {
  static constexpr bool kColumnsIndependent = false;
  const T* x;
  const T* weight;
  const T* bias;
  T* out;
  float* mean;
  float* rstd;
  int64_t x_stride, out_stride;
  float eps;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    const auto xs = row.load(x + r * x_stride);
    const auto weights = row.load(weight);
    const auto biases = row.load(bias);
    const float count = static_cast<float>(row.cols());
    const float m = row.sum([&](auto i) { return xs[i]; }) / count;
    const float variance = row.sum([&](auto i) {
      const float centred = xs[i] - m;
      return centred * centred;
    }) / count;
    const float s = 1.0f / SquareRoot(variance + eps);
    row.store(out + r * out_stride, [&](auto i) { return (xs[i] - m) * s * weights[i] + biases[i]; });
    row.once([&] {
      mean[r] = m;
      rstd[r] = s;
    });
  }
};

// With n = (x - mean) * rstd and g = d_out * weight: d_x [+]= rstd * (g - average(g) - n * average(g n)).
template <typename T>
struct LayerNormBackwardRows {
  static constexpr bool kColumnsIndependent = false;
  const T* d_out;
  const T* x;
  const T* weight;
  const float* mean;
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
    const float m = mean[r];
    const float s = rstd[r];
    const float average = row.sum([&](auto i) { return d_outs[i] * weights[i]; }) / count;
    const float moment = row.sum([&](auto i) { return d_outs[i] * weights[i] * ((xs[i] - m) * s); }) / count;
    T* const d_x_row = d_x + r * d_x_stride;
    StoreOrAdd(row, d_x_row, add,
               [&](auto i) { return s * (d_outs[i] * weights[i] - average - (xs[i] - m) * s * moment); });
  }
};

}  // namespace muster::kernels
