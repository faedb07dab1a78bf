#include <algorithm>
#include <cmath>
#include <vector>

#include "worker/kernels/operations/operation.h"

namespace muster::kernels {

void FillRopeTable(KernelContext& context, double base, const Tensor& table) {
  const int64_t sequence = table.rows();
  const int64_t head_dim = table.cols();
  const int64_t half = head_dim / 2;
  CheckShape(table, DType::kF32, sequence, 2 * half);
  MUSTER_CHECK(IsDense(table));
  std::vector<float> positions;  // a few at a time: memory beyond the arena is for small things
  constexpr int64_t kFloatsAtOnce = 16384;
  for (int64_t first = 0; first < sequence; first += std::max<int64_t>(1, kFloatsAtOnce / head_dim)) {
    const int64_t last = std::min(sequence, first + std::max<int64_t>(1, kFloatsAtOnce / head_dim));
    positions.clear();
    for (int64_t position = first; position < last; ++position) {
      const auto angle = [&](int64_t i) {
        return static_cast<double>(position) *
               std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
      };
      for (int64_t i = 0; i < half; ++i) positions.push_back(static_cast<float>(std::cos(angle(i))));
      for (int64_t i = 0; i < half; ++i) positions.push_back(static_cast<float>(std::sin(angle(i))));
    }
    context.device().CopyToDevice(table.as<float>() + first * head_dim, positions.data(),
                                  (last - first) * head_dim * SizeOf(DType::kF32));
  }
}

void Rope(KernelContext& context, const Tensor& table, const AttentionShape& shape, const Tensor& qkv, bool inverse) {
  const ProfileRange range(context.device(), "rope");
  const int64_t rows = shape.batch * shape.sequence;
  const int64_t turned = shape.heads + shape.kv_heads;
  const int64_t half = shape.head_dim / 2;
  CheckShape(qkv, qkv.dtype, rows, (turned + shape.kv_heads) * shape.head_dim);
  CheckShape(table, DType::kF32, table.rows(), 2 * half);
  MUSTER_CHECK(IsDense(table) && table.rows() >= shape.sequence && shape.head_dim == 2 * half);
  WithType(qkv.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           RopeRows<T>{table.as<float>(), qkv.as<T>(), turned, shape.sequence, half, qkv.row_stride,
                       inverse ? -1.0f : 1.0f},
           rows * turned, half);
  });
}

}  // namespace muster::kernels
