#include <algorithm>

#include "worker/kernels/operations/operation.h"

namespace muster::kernels {
namespace {

void CheckClasses(const Tensor& logits, const ClassRange& classes) {
  MUSTER_CHECK(classes.count >= 0 && classes.count <= logits.cols(), classes.count, " classes in ", logits.cols(),
               " columns");
}

}  // namespace

void CrossEntropyStatistics(KernelContext& context, const Tensor& logits, const Tensor& targets,
                            const ClassRange& classes, const Tensor& stats) {
  const ProfileRange range(context.device(), "cross_entropy");
  CheckVector(targets, DType::kI32, logits.rows());
  CheckVector(stats, DType::kF32, logits.rows() * kCrossEntropyStatistics);
  CheckClasses(logits, classes);
  WithType(logits.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           CrossEntropyStatisticsRows<T>{logits.as<T>(), targets.as<int32_t>(), stats.as<float>(), logits.row_stride,
                                         static_cast<int32_t>(classes.first), classes.count == 0},
           logits.rows(), std::max<int64_t>(1, classes.count));
  });
}

void CrossEntropyFromStatistics(KernelContext& context, const Tensor& stats, const Tensor& targets, int64_t vocab,
                                const Tensor& losses, const Tensor& lse) {
  const ProfileRange range(context.device(), "cross_entropy");
  const int64_t rows = targets.elements();
  const int64_t part = rows * kCrossEntropyStatistics;
  CheckVector(targets, DType::kI32, rows);
  CheckVector(losses, DType::kF32, rows);
  CheckVector(lse, DType::kF32, rows);
  CheckVector(stats, DType::kF32, stats.elements());
  MUSTER_CHECK(stats.elements() >= part && stats.elements() % part == 0, stats.elements(), " statistics of ", rows,
               " rows");
  Launch(context,
         CrossEntropyFromStatisticsRows{stats.as<float>(), targets.as<int32_t>(), losses.as<float>(), lse.as<float>(),
                                        stats.elements() / part, part, static_cast<int32_t>(vocab), kIgnoredTarget},
         rows, 1);
}

void CrossEntropyBackward(KernelContext& context, const Tensor& logits, const Tensor& targets,
                          const ClassRange& classes, const Tensor& lse, float scale) {
  const ProfileRange range(context.device(), "cross_entropy");
  CheckClasses(logits, classes);
  CheckVector(targets, DType::kI32, logits.rows());
  CheckVector(lse, DType::kF32, logits.rows());
  WithType(logits.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           CrossEntropyBackwardRows<T>{logits.as<T>(), targets.as<int32_t>(), lse.as<float>(), logits.row_stride, scale,
                                       static_cast<int32_t>(classes.first), static_cast<int32_t>(classes.count),
                                       kIgnoredTarget},
           logits.rows(), logits.cols());
  });
}

}  // namespace muster::kernels
