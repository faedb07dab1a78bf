#include "worker/kernels/operations/operation.h"

namespace muster::kernels {
namespace {

void CheckTable(const Tensor& table, DType dtype, int64_t cols) {
  CheckShape(table, dtype, table.rows(), cols);
  MUSTER_CHECK(IsDense(table));
}

void CheckPositions(const EmbeddingShape& shape, const Tensor& table, int64_t rows) {
  MUSTER_CHECK(shape.sequence_length <= table.rows(), "a sequence of ", shape.sequence_length, " in a table of ",
               table.rows(), " positions");
  MUSTER_CHECK(rows % shape.sequence_length == 0, rows, " rows in sequences of ", shape.sequence_length);
}

}  // namespace

void EmbeddingForward(KernelContext& context, const EmbeddingShape& shape, const Tensor& tokens,
                      const Tensor& token_weight, const Tensor& position_weight, const Tensor& out) {
  const ProfileRange range(context.device(), "embedding");
  CheckVector(tokens, DType::kI32, out.rows());
  CheckTable(token_weight, out.dtype, out.cols());
  if (IsGiven(position_weight)) {
    CheckTable(position_weight, out.dtype, out.cols());
    CheckPositions(shape, position_weight, out.rows());
  }
  WithType(out.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           EmbeddingForwardRows<T>{tokens.as<int32_t>(), token_weight.as<T>(), position_weight.as<T>(), out.as<T>(),
                                   shape.first_token, token_weight.rows(), shape.vocab, shape.sequence_length,
                                   out.row_stride},
           out.rows(), out.cols());
  });
}

void EmbeddingBackward(KernelContext& context, const EmbeddingShape& shape, const Tensor& tokens, const Tensor& d_out,
                       const Tensor& d_token, const Tensor& d_position, bool accumulate) {
  const ProfileRange range(context.device(), "embedding");
  const int64_t rows = d_out.rows();
  const int64_t hidden = d_out.cols();
  const bool has_tokens = IsGiven(d_token);
  const bool has_positions = IsGiven(d_position);
  CheckVector(tokens, DType::kI32, rows);
  if (has_tokens) CheckTable(d_token, DType::kF32, hidden);
  if (has_positions) {
    CheckTable(d_position, DType::kF32, hidden);
    CheckPositions(shape, d_position, rows);
  }
  if (!accumulate) {
    if (has_tokens) FillZero(context, d_token.data, d_token.bytes());
    if (has_positions) FillZero(context, d_position.data, d_position.bytes());
  }
  WithType(d_out.dtype, [&](auto type) {
    using T = decltype(type);
    if (has_tokens) {
      Launch(context,
             EmbeddingTokenRows<T>{tokens.as<int32_t>(), d_out.as<T>(), d_token.as<float>(), rows, shape.first_token,
                                   d_token.rows(), d_out.row_stride},
             1, hidden);
    }
    if (!has_positions) return;
    const int64_t sequence = shape.sequence_length;
    Launch(context,
           EmbeddingPositionRows<T>{d_out.as<T>(), d_position.as<float>(), rows / sequence, sequence, d_out.row_stride},
           sequence, hidden);
  });
}

}  // namespace muster::kernels
