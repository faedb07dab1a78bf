#include "worker/kernels/operations/operation.h"

namespace muster::kernels {
namespace {

// How elementwise kernels walk tensors of one shape: as a single long row when none has gaps.
struct Walk {
  int64_t rows = 0;
  int64_t cols = 0;
};
template <typename... Tensors>
Walk WalkOf(const Tensor& first, const Tensors&... rest) {
  if (IsDense(first) && (IsDense(rest) && ...)) return Walk{1, first.elements()};
  return Walk{first.rows(), first.cols()};
}

}  // namespace

void Add(KernelContext& context, const Tensor& x, const Tensor& residual, const Tensor& out, const Tensor& bias) {
  const ProfileRange range(context.device(), "add");
  CheckShape(residual, x.dtype, x.rows(), x.cols());
  CheckShape(out, x.dtype, x.rows(), x.cols());
  Walk walk = WalkOf(x, residual, out);
  if (IsGiven(bias)) {
    CheckVector(bias, x.dtype, x.cols());
    walk = {x.rows(), x.cols()};
  }
  WithType(x.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           AddRows<T>{x.as<T>(), bias.as<T>(), residual.as<T>(), out.as<T>(), x.row_stride, residual.row_stride,
                      out.row_stride},
           walk.rows, walk.cols);
  });
}

void GeluForward(KernelContext& context, const Tensor& x, const Tensor& out) {
  const ProfileRange range(context.device(), "gelu");
  CheckShape(out, x.dtype, x.rows(), x.cols());
  const Walk walk = WalkOf(x, out);
  WithType(x.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context, GeluForwardRows<T>{x.as<T>(), out.as<T>(), x.row_stride, out.row_stride}, walk.rows, walk.cols);
  });
}

void GeluBackward(KernelContext& context, const Tensor& d_out, const Tensor& x, const Tensor& d_x) {
  const ProfileRange range(context.device(), "gelu");
  CheckShape(d_out, x.dtype, x.rows(), x.cols());
  CheckShape(d_x, x.dtype, x.rows(), x.cols());
  const Walk walk = WalkOf(d_out, x, d_x);
  WithType(x.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           GeluBackwardRows<T>{d_out.as<T>(), x.as<T>(), d_x.as<T>(), d_out.row_stride, x.row_stride, d_x.row_stride},
           walk.rows, walk.cols);
  });
}

void SwiGluForward(KernelContext& context, const Tensor& gate_up, const Tensor& out) {
  const ProfileRange range(context.device(), "swiglu");
  const int64_t cols = out.cols();
  CheckShape(gate_up, out.dtype, out.rows(), 2 * cols);
  WithType(out.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(
        context,
        SwiGluForwardRows<T>{gate_up.as<T>(), gate_up.as<T>() + cols, out.as<T>(), gate_up.row_stride, out.row_stride},
        out.rows(), cols);
  });
}

void SwiGluBackward(KernelContext& context, const Tensor& d_out, const Tensor& gate_up, const Tensor& d_gate_up) {
  const ProfileRange range(context.device(), "swiglu");
  const int64_t cols = d_out.cols();
  CheckShape(gate_up, d_out.dtype, d_out.rows(), 2 * cols);
  CheckShape(d_gate_up, d_out.dtype, d_out.rows(), 2 * cols);
  MUSTER_CHECK(d_gate_up.data != d_out.data && d_gate_up.data != gate_up.data);
  WithType(d_out.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           SwiGluBackwardRows<T>{d_out.as<T>(), gate_up.as<T>(), gate_up.as<T>() + cols, d_gate_up.as<T>(),
                                 d_gate_up.as<T>() + cols, d_out.row_stride, gate_up.row_stride, d_gate_up.row_stride},
           d_out.rows(), cols);
  });
}

void BiasGradient(KernelContext& context, const Tensor& d_out, const Tensor& d_bias, bool accumulate,
                  const Tensor& partials) {
  const ProfileRange range(context.device(), "bias_gradient");
  const int64_t cols = d_out.cols();
  CheckVector(d_bias, DType::kF32, cols);
  CheckVector(partials, DType::kF32, kColumnPartitions * cols);
  WithType(d_out.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           BiasPartialRows<T>{d_out.as<T>(), partials.as<float>(), d_out.row_stride, cols, d_out.rows(),
                              kColumnPartitions},
           kColumnPartitions, cols);
  });
  Launch(context, OrderedSumRows{partials.as<float>(), d_bias.as<float>(), cols, kColumnPartitions, accumulate}, 1,
         cols);
}

void Zero(KernelContext& context, const Tensor& x) {
  MUSTER_CHECK(IsDense(x));
  FillZero(context, x.data, x.bytes());
}

void Cast(KernelContext& context, const Tensor& from, const Tensor& to) {
  const ProfileRange range(context.device(), "cast");
  const bool flat = IsDense(from) && IsDense(to);
  MUSTER_CHECK(from.elements() == to.elements() && (flat || from.cols() == to.cols()), from.elements(), " elements to ",
               to.elements());
  WithType(from.dtype, [&](auto from_type) {
    WithType(to.dtype, [&](auto to_type) {
      using From = decltype(from_type);
      using To = decltype(to_type);
      Launch(context, CastRows<From, To>{from.as<From>(), to.as<To>(), from.row_stride, to.row_stride},
             flat ? 1 : from.rows(), flat ? from.elements() : from.cols());
    });
  });
}

void Copy(KernelContext& context, const Tensor& from, const Tensor& to) {
  const ProfileRange range(context.device(), "copy");
  CheckShape(to, from.dtype, from.rows(), from.cols());
  const Walk walk = WalkOf(from, to);
  const int64_t element = SizeOf(from.dtype);
  CopyRows(context, {to.data, to.row_stride * element}, {from.data, from.row_stride * element}, walk.rows,
           walk.cols * element);
}

void SumInOrder(KernelContext& context, const Tensor& parts, const Tensor& out) {
  const ProfileRange range(context.device(), "sum_in_order");
  const int64_t count = parts.rows();
  CheckShape(parts, out.dtype, count, out.elements());
  CheckVector(out, out.dtype, out.elements());
  MUSTER_CHECK(count >= 1);
  WithType(out.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context, SumPartsRows<T>{parts.as<T>(), out.as<T>(), parts.row_stride, count}, 1, out.elements());
  });
}

}  // namespace muster::kernels
