// The parts that units are made of: parameters with their gradients, linears and norms. Values of views; copied freely.
//
// T rows of a micro-batch; with t tensor ranks the residual stream has T/t rows here, and in, out, f are this rank's
// part of a linear that is split over them.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "worker/kernels/context.h"
#include "worker/model/row_exchange.h"
#include "worker/tensor/view.h"

namespace muster {

// A parameter as forward and backward see it.
struct Weight {
  Tensor value;     // compute
  Tensor gradient;  // f32, the same shape; empty where the parameter is not trained

  bool trained() const { return gradient.data != nullptr; }
};

// out = x weight^T + bias.
struct Linear {
  Weight weight;               // (out, in)
  std::optional<Weight> bias;  // (out)

  // x (T, in) -> out (T, out).
  void Forward(KernelContext& kernels, const Tensor& x, const Tensor& out) const;

  // d_out (T, out), x (T, in) -> d_x (T, in), written last: it may be x; gradients of weight and bias.
  // partials: f32, at least kColumnPartitions x out, where there is a bias.
  void Backward(KernelContext& kernels, const Tensor& d_out, const Tensor& x, const Tensor& d_x, bool accumulate,
                const Tensor& partials) const;
};

// What ends a unit: out = x weight^T, summed over the tensor group, + bias + residual. The bias is added once, behind
// the sum, and its gradient is of this rank's rows.
struct ResidualLinear {
  Linear linear;               // (h, in), without its bias
  std::optional<Weight> bias;  // (h)

  // x (T, in), residual (T/t, h) -> out (T/t, h).
  absl::Status Forward(KernelContext& kernels, const RowExchange& exchange, const Tensor& x, const Tensor& residual,
                       const Tensor& out) const;

  // d_out (T/t, h), x (T, in) -> d_x (T, in); gradients of weight and bias. The residual's gradient is d_out.
  // partials: f32, at least kColumnPartitions x h, where there is a bias.
  absl::Status Backward(KernelContext& kernels, const RowExchange& exchange, const Tensor& d_out, const Tensor& x,
                        const Tensor& d_x, bool accumulate, const Tensor& partials) const;
};

// LayerNorm where there is a bias, RMSNorm where there is none: no family has one without the other.
struct Norm {
  Weight weight;               // (h)
  std::optional<Weight> bias;  // (h)
  float eps = 1e-5f;

  // What forward writes, r rows.
  struct State {
    Tensor out;   // (r, h) compute
    Tensor mean;  // (r) f32; LayerNorm only
    Tensor rstd;  // (r) f32
  };

  // x (r, h).
  void Forward(KernelContext& kernels, const Tensor& x, const State& state) const;

  // d_out (r, h) -> d_x (r, h), written, or added to with add_to_d_x; gradients of weight and bias.
  // partials: f32, at least kColumnPartitions x 2 h.
  void Backward(KernelContext& kernels, const Tensor& d_out, const Tensor& x, const State& state, const Tensor& d_x,
                bool add_to_d_x, bool accumulate, const Tensor& partials) const;
};

}  // namespace muster
