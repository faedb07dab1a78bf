#include <algorithm>
#include <array>

#include "worker/kernels/operations/operation.h"

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

double SumToHost(KernelContext& context, const Tensor& values) { return SumBlocksToHost(context, values, false); }

double SumOfSquaresToHost(KernelContext& context, const Tensor& gradient) {
  const ProfileRange range(context.device(), "gradient_norm");
  return SumBlocksToHost(context, gradient, true);
}

}  // namespace muster::kernels
