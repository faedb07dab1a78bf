// Sums down columns, over ranks, and to the host.
#include <algorithm>
#include <array>

#include "worker/kernels/operations/support.h"

namespace muster::kernels {
namespace {

double SumBlocksToHost(KernelContext& context, const Tensor& values, bool squares) {
  CheckVector(values, DType::kF32, values.elements());
  float* const sums = ReductionScratch(context);
  std::array<float, kReductionBlocks> on_host;
  const auto launch = [&](int64_t offset, int64_t blocks, int64_t cols) {
    const float* const start = values.as<float>() + offset;
    if (squares) {
      Launch(context, BlockSumRows<true>{start, sums, kSumBlock}, blocks, cols);
    } else {
      Launch(context, BlockSumRows<false>{start, sums, kSumBlock}, blocks, cols);
    }
    context.device().CopyToHost(on_host.data(), sums, blocks * SizeOf(DType::kF32));
  };
  double total = 0;
  const int64_t whole_blocks = values.elements() / kSumBlock;
  for (int64_t first = 0; first < whole_blocks; first += kReductionBlocks) {
    const int64_t blocks = std::min(kReductionBlocks, whole_blocks - first);
    launch(first * kSumBlock, blocks, kSumBlock);
    for (int64_t i = 0; i < blocks; ++i) total += static_cast<double>(on_host[static_cast<size_t>(i)]);
  }
  if (const int64_t rest = values.elements() % kSumBlock; rest > 0) {
    launch(whole_blocks * kSumBlock, 1, rest);
    total += static_cast<double>(on_host[0]);
  }
  return total;
}

}  // namespace

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

double SumToHost(KernelContext& context, const Tensor& values) { return SumBlocksToHost(context, values, false); }

double SumOfSquaresToHost(KernelContext& context, const Tensor& gradient) {
  const ProfileRange range(context.device(), "gradient_norm");
  return SumBlocksToHost(context, gradient, true);
}

}  // namespace muster::kernels
