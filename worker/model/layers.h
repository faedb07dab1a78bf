// The parts that units are made of: parameters with their gradients, linears and norms. Values of views; copied freely.
#pragma once

#include <optional>

#include "worker/kernels/context.h"
#include "worker/tensor/view.h"

namespace muster {

// A parameter as forward and backward see it.
struct Weight {
  Tensor value;     // compute
  Tensor gradient;  // f32, the same shape
};

// out = x weight^T + bias.
struct Linear {
  Weight weight;               // (out, in)
  std::optional<Weight> bias;  // (out)

  // x (T, in) -> out (T, out).
  void Forward(KernelContext& kernels, const Tensor& x, const Tensor& out) const;

  // d_out (T, out), x (T, in) -> d_x (T, in), written; gradients of weight and bias.
  // partials: f32, at least kColumnPartitions x out.
  void Backward(KernelContext& kernels, const Tensor& d_out, const Tensor& x, const Tensor& d_x, bool accumulate,
                const Tensor& partials) const;
};

struct LayerNorm {
  Weight weight;  // (h)
  Weight bias;    // (h)
  float eps = 1e-5f;

  // x (T, h) -> out (T, h); mean, rstd (T) f32, for backward.
  void Forward(KernelContext& kernels, const Tensor& x, const Tensor& out, const Tensor& mean,
               const Tensor& rstd) const;

  struct Saved {
    Tensor x;           // (T, h)
    Tensor mean, rstd;  // (T)
  };
  // d_out (T, h) -> d_x (T, h), written, or added to with add_to_d_x; gradients of weight and bias.
  // partials: f32, at least kColumnPartitions x 2 h.
  void Backward(KernelContext& kernels, const Tensor& d_out, const Saved& saved, const Tensor& d_x, bool add_to_d_x,
                bool accumulate, const Tensor& partials) const;
};

}  // namespace muster
