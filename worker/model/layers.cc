#include "worker/model/layers.h"

#include "common/base/status_macros.h"
#include "worker/kernels/kernels.h"

namespace muster {
namespace {

Tensor ValueOf(const std::optional<Weight>& weight) { return weight.has_value() ? weight->value : Tensor(); }
Tensor GradientOf(const std::optional<Weight>& weight) { return weight.has_value() ? weight->gradient : Tensor(); }

void AddBiasGradient(KernelContext& kernels, const std::optional<Weight>& bias, const Tensor& d_out, bool accumulate,
                     const Tensor& partials) {
  if (!bias.has_value() || !bias->trained()) return;
  const Tensor shaped(partials.data, DType::kF32, {kColumnPartitions, d_out.cols()});
  kernels::BiasGradient(kernels, d_out, bias->gradient, accumulate, shaped);
}

}  // namespace

void Linear::Forward(KernelContext& kernels, const Tensor& x, const Tensor& out) const {
  kernels::MatMul(
      kernels,
      {.a = x, .b = weight.value, .out = out, .transpose_b = true, .bias = bias.has_value() ? &bias->value : nullptr});
}

void Linear::Backward(KernelContext& kernels, const Tensor& d_out, const Tensor& x, const Tensor& d_x, bool accumulate,
                      const Tensor& partials) const {
  if (weight.trained()) {
    kernels::MatMul(kernels,
                    {.a = d_out, .b = x, .out = weight.gradient, .transpose_a = true, .accumulate = accumulate});
  }
  AddBiasGradient(kernels, bias, d_out, accumulate, partials);
  kernels::MatMul(kernels, {.a = d_out, .b = weight.value, .out = d_x});
}

absl::Status ResidualLinear::Forward(KernelContext& kernels, const RowExchange& exchange, const Tensor& x,
                                     const Tensor& residual, const Tensor& out) const {
  const Tensor partial = exchange.PartialFor(out);
  linear.Forward(kernels, x, partial);
  MUSTER_RETURN_IF_ERROR(exchange.Reduce(partial, out));
  kernels::Add(kernels, out, residual, out, ValueOf(bias));
  return absl::OkStatus();
}

absl::Status ResidualLinear::Backward(KernelContext& kernels, const RowExchange& exchange, const Tensor& d_out,
                                      const Tensor& x, const Tensor& d_x, bool accumulate,
                                      const Tensor& partials) const {
  AddBiasGradient(kernels, bias, d_out, accumulate, partials);
  MUSTER_ASSIGN_OR_RETURN(const Tensor d_whole, exchange.Gather(d_out));
  linear.Backward(kernels, d_whole, x, d_x, accumulate, partials);
  return absl::OkStatus();
}

void Norm::Forward(KernelContext& kernels, const Tensor& x, const State& state) const {
  if (bias.has_value()) {
    kernels::LayerNormForward(kernels, x, weight.value, bias->value, eps, state.out, state.mean, state.rstd);
  } else {
    kernels::RmsNormForward(kernels, x, weight.value, eps, state.out, state.rstd);
  }
}

void Norm::Backward(KernelContext& kernels, const Tensor& d_out, const Tensor& x, const State& state, const Tensor& d_x,
                    bool add_to_d_x, bool accumulate, const Tensor& partials) const {
  if (bias.has_value()) {
    const Tensor shaped(partials.data, DType::kF32, {kColumnPartitions, 2, d_out.cols()});
    kernels::LayerNormBackward(kernels, d_out, x, weight.value, state.mean, state.rstd, d_x, add_to_d_x,
                               weight.gradient, GradientOf(bias), accumulate, shaped);
  } else {
    const Tensor shaped(partials.data, DType::kF32, {kColumnPartitions, d_out.cols()});
    kernels::RmsNormBackward(kernels, d_out, x, weight.value, state.rstd, d_x, add_to_d_x, weight.gradient, accumulate,
                             shaped);
  }
}

}  // namespace muster
