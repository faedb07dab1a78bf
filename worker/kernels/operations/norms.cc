#include "worker/kernels/operations/operation.h"

namespace muster::kernels {

void LayerNormForward(KernelContext& context, const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
                      const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  const ProfileRange range(context.device(), "layer_norm");
  CheckShape(out, x.dtype, x.rows(), x.cols());
  CheckVector(weight, x.dtype, x.cols());
  CheckVector(bias, x.dtype, x.cols());
  CheckVector(mean, DType::kF32, x.rows());
  CheckVector(rstd, DType::kF32, x.rows());
  WithType(x.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           LayerNormForwardRows<T>{x.as<T>(), weight.as<T>(), bias.as<T>(), out.as<T>(), mean.as<float>(),
                                   rstd.as<float>(), x.row_stride, out.row_stride, eps},
           x.rows(), x.cols());
  });
}

void LayerNormBackward(KernelContext& context, const Tensor& d_out, const Tensor& x, const Tensor& weight,
                       const Tensor& mean, const Tensor& rstd, const Tensor& d_x, bool add_to_d_x,
                       const Tensor& d_weight, const Tensor& d_bias, bool accumulate, const Tensor& partials) {
  const ProfileRange range(context.device(), "layer_norm");
  const int64_t rows = x.rows();
  const int64_t hidden = x.cols();
  CheckShape(d_out, x.dtype, rows, hidden);
  CheckShape(d_x, x.dtype, rows, hidden);
  CheckVector(weight, x.dtype, hidden);
  CheckVector(mean, DType::kF32, rows);
  CheckVector(rstd, DType::kF32, rows);
  if (IsGiven(d_weight)) CheckVector(d_weight, DType::kF32, hidden);
  if (IsGiven(d_bias)) CheckVector(d_bias, DType::kF32, hidden);
  CheckVector(partials, DType::kF32, kColumnPartitions * 2 * hidden);
  WithType(x.dtype, [&](auto type) {
    using T = decltype(type);
    // The weights' gradients first: d_x may be d_out.
    Launch(context,
           LayerNormPartialRows<T>{d_out.as<T>(), x.as<T>(), mean.as<float>(), rstd.as<float>(), partials.as<float>(),
                                   d_out.row_stride, x.row_stride, rows, kColumnPartitions},
           kColumnPartitions, hidden);
    Launch(context,
           LayerNormBackwardRows<T>{d_out.as<T>(), x.as<T>(), weight.as<T>(), mean.as<float>(), rstd.as<float>(),
                                    d_x.as<T>(), d_out.row_stride, x.row_stride, d_x.row_stride, add_to_d_x},
           rows, hidden);
  });
  const float* const sums = partials.as<float>();
  const auto sum = [&](const float* first, const Tensor& d_vector) {
    if (!IsGiven(d_vector)) return;
    Launch(context, OrderedSumRows{first, d_vector.as<float>(), 2 * hidden, kColumnPartitions, accumulate}, 1, hidden);
  };
  sum(sums, d_weight);
  sum(sums + hidden, d_bias);
}

void RmsNormForward(KernelContext& context, const Tensor& x, const Tensor& weight, float eps, const Tensor& out,
                    const Tensor& rstd) {
  const ProfileRange range(context.device(), "rms_norm");
  CheckShape(out, x.dtype, x.rows(), x.cols());
  CheckVector(weight, x.dtype, x.cols());
  CheckVector(rstd, DType::kF32, x.rows());
  WithType(x.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           RmsNormForwardRows<T>{x.as<T>(), weight.as<T>(), out.as<T>(), rstd.as<float>(), x.row_stride, out.row_stride,
                                 eps},
           x.rows(), x.cols());
  });
}

void RmsNormBackward(KernelContext& context, const Tensor& d_out, const Tensor& x, const Tensor& weight,
                     const Tensor& rstd, const Tensor& d_x, bool add_to_d_x, const Tensor& d_weight, bool accumulate,
                     const Tensor& partials) {
  const ProfileRange range(context.device(), "rms_norm");
  const int64_t rows = x.rows();
  const int64_t hidden = x.cols();
  CheckShape(d_out, x.dtype, rows, hidden);
  CheckShape(d_x, x.dtype, rows, hidden);
  CheckVector(weight, x.dtype, hidden);
  CheckVector(rstd, DType::kF32, rows);
  if (IsGiven(d_weight)) CheckVector(d_weight, DType::kF32, hidden);
  CheckVector(partials, DType::kF32, kColumnPartitions * hidden);
  WithType(x.dtype, [&](auto type) {
    using T = decltype(type);
    // The weight's gradient first: d_x may be d_out.
    Launch(context,
           RmsNormPartialRows<T>{d_out.as<T>(), x.as<T>(), rstd.as<float>(), partials.as<float>(), d_out.row_stride,
                                 x.row_stride, rows, kColumnPartitions},
           kColumnPartitions, hidden);
    Launch(context,
           RmsNormBackwardRows<T>{d_out.as<T>(), x.as<T>(), weight.as<T>(), rstd.as<float>(), d_x.as<T>(),
                                  d_out.row_stride, x.row_stride, d_x.row_stride, add_to_d_x},
           rows, hidden);
  });
  if (!IsGiven(d_weight)) return;
  Launch(context, OrderedSumRows{partials.as<float>(), d_weight.as<float>(), hidden, kColumnPartitions, accumulate}, 1,
         hidden);
}

}  // namespace muster::kernels
