#include "worker/model/layers.h"

#include "worker/kernels/kernels.h"

namespace muster {

void Linear::Forward(KernelContext& kernels, const Tensor& x, const Tensor& out) const {
  kernels::MatMul(
      kernels,
      {.a = x, .b = weight.value, .out = out, .transpose_b = true, .bias = bias.has_value() ? &bias->value : nullptr});
}

void Linear::Backward(KernelContext& kernels, const Tensor& d_out, const Tensor& x, const Tensor& d_x, bool accumulate,
                      const Tensor& partials) const {
  kernels::MatMul(kernels, {.a = d_out, .b = weight.value, .out = d_x});
  kernels::MatMul(kernels, {.a = d_out, .b = x, .out = weight.gradient, .transpose_a = true, .accumulate = accumulate});
  if (bias.has_value()) {
    const Tensor shaped(partials.data, DType::kF32, {kColumnPartitions, d_out.cols()});
    kernels::BiasGradient(kernels, d_out, bias->gradient, accumulate, shaped);
  }
}

void LayerNorm::Forward(KernelContext& kernels, const Tensor& x, const Tensor& out, const Tensor& mean,
                        const Tensor& rstd) const {
  kernels::LayerNormForward(kernels, x, weight.value, bias.value, eps, out, mean, rstd);
}

void LayerNorm::Backward(KernelContext& kernels, const Tensor& d_out, const Saved& saved, const Tensor& d_x,
                         bool add_to_d_x, bool accumulate, const Tensor& partials) const {
  const Tensor shaped(partials.data, DType::kF32, {kColumnPartitions, 2, d_out.cols()});
  kernels::LayerNormBackward(kernels, d_out, saved.x, weight.value, saved.mean, saved.rstd, d_x, add_to_d_x,
                             weight.gradient, bias.gradient, accumulate, shaped);
}

}  // namespace muster
