// Row kernels whose elements do not know each other. What a row kernel is: worker/kernels/row_kernels.h. Plain C++17.
#pragma once

#include <cstdint>

#include "worker/kernels/formulas.h"

namespace muster::kernels {

// out = x + bias + residual; bias may be null
template <typename T>
struct AddRows {
  static constexpr bool kColumnsIndependent = true;
  const T* x;
  const T* bias;
  const T* residual;
  T* out;
  int64_t x_stride, residual_stride, out_stride;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    const auto xs = row.load(x + r * x_stride);
    const auto residuals = row.load(residual + r * residual_stride);
    T* const out_row = out + r * out_stride;
    if (bias == nullptr) {
      row.store(out_row, [&](auto i) { return xs[i] + residuals[i]; });
    } else {
      const auto biases = row.load(bias);
      row.store(out_row, [&](auto i) { return xs[i] + biases[i] + residuals[i]; });
    }
  }
};

// out = gelu(x)
template <typename T>
struct GeluForwardRows {
  static constexpr bool kColumnsIndependent = true;
  const T* x;
  T* out;
  int64_t x_stride, out_stride;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    const auto xs = row.load(x + r * x_stride);
    row.store(out + r * out_stride, [&](auto i) { return Gelu(xs[i]); });
  }
};

// d_x = d_out * gelu'(x)
template <typename T>
struct GeluBackwardRows {
  static constexpr bool kColumnsIndependent = true;
  const T* d_out;
  const T* x;
  T* d_x;
  int64_t d_out_stride, x_stride, d_x_stride;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    const auto d_outs = row.load(d_out + r * d_out_stride);
    const auto xs = row.load(x + r * x_stride);
    row.store(d_x + r * d_x_stride, [&](auto i) { return d_outs[i] * GeluDerivative(xs[i]); });
  }
};

// out = silu(gate) * up
template <typename T>
struct SwiGluForwardRows {
  static constexpr bool kColumnsIndependent = true;
  const T* gate;
  const T* up;
  T* out;
  int64_t gate_up_stride, out_stride;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    const auto gates = row.load(gate + r * gate_up_stride);
    const auto ups = row.load(up + r * gate_up_stride);
    row.store(out + r * out_stride, [&](auto i) { return gates[i] * Sigmoid(gates[i]) * ups[i]; });
  }
};

// d_gate = d_out * up * silu'(gate), d_up = d_out * silu(gate)
template <typename T>
struct SwiGluBackwardRows {
  static constexpr bool kColumnsIndependent = true;
  const T* d_out;
  const T* gate;
  const T* up;
  T* d_gate;
  T* d_up;
  int64_t d_out_stride, gate_up_stride, d_gate_up_stride;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    const auto d_outs = row.load(d_out + r * d_out_stride);
    const auto gates = row.load(gate + r * gate_up_stride);
    const auto ups = row.load(up + r * gate_up_stride);
    row.store_two(d_gate + r * d_gate_up_stride, d_up + r * d_gate_up_stride, [&](auto i) {
      const Two silu = SiluAndDerivative(gates[i]);
      return Two{d_outs[i] * ups[i] * silu.second, d_outs[i] * silu.first};
    });
  }
};

// to = from in another number format
template <typename From, typename To>
struct CastRows {
  static constexpr bool kColumnsIndependent = true;
  const From* from;
  To* to;
  int64_t from_stride, to_stride;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    const auto values = row.load(from + r * from_stride);
    row.store(to + r * to_stride, [&](auto i) { return values[i]; });
  }
};

// out [+]= product + bias, where a product was summed in f32 for want of a matmul of the compute type. bias may be
// null.
template <typename Compute, typename T>
struct FinishProductRows {
  static constexpr bool kColumnsIndependent = true;
  const float* product;
  const Compute* bias;
  T* out;
  int64_t product_stride, out_stride;
  bool accumulate;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    T* const out_row = out + r * out_stride;
    const auto products = row.load(product + r * product_stride);
    if (accumulate) {
      const auto before = row.load(out_row);
      row.store(out_row, [&](auto i) { return before[i] + products[i]; });
    } else if (bias != nullptr) {
      const auto biases = row.load(bias);
      row.store(out_row, [&](auto i) { return products[i] + biases[i]; });
    } else {
      row.store(out_row, [&](auto i) { return products[i]; });
    }
  }
};

}  // namespace muster::kernels
