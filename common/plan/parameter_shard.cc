#include "common/plan/parameter_shard.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"

namespace muster {
namespace {

enum class Cut {
  kWhole,      // held by every rank; each computes a part of the gradient, from its rows of the residual stream
  kPositions,  // held by every rank; each computes the whole gradient
  kVocabulary,
  kQkv,
  kGateUp,
  kRows,     // plain column-parallel: rows of weight or bias
  kColumns,  // row-parallel weight
};

Cut CutOf(absl::string_view name) {
  if (name == "embedding.token.weight" || name == "head.weight") return Cut::kVocabulary;
  if (name == "embedding.position.weight") return Cut::kPositions;
  if (absl::EndsWith(name, ".qkv.weight") || absl::EndsWith(name, ".qkv.bias")) return Cut::kQkv;
  if (absl::EndsWith(name, ".gate_up.weight")) return Cut::kGateUp;
  if (absl::EndsWith(name, ".up.weight") || absl::EndsWith(name, ".up.bias")) return Cut::kRows;
  if (absl::EndsWith(name, ".projection.weight") || absl::EndsWith(name, ".down.weight")) return Cut::kColumns;
  return Cut::kWhole;
}

// Collects pieces that are runs of whole rows, one after another in the local tensor.
class RowPieces {
 public:
  RowPieces(const ParameterInfo& parameter, int64_t rank) : parameter_(parameter), rank_(rank) {}

  void Add(int64_t first_row, int64_t rows) { AddShared(first_row, rows, rank_, 1); }

  void AddShared(int64_t first_row, int64_t rows, int64_t first_sharer, int64_t sharers) {
    ShardPiece piece;
    piece.offset.assign(parameter_.dims.size(), 0);
    piece.offset[0] = first_row;
    piece.dims = parameter_.dims;
    piece.dims[0] = rows;
    piece.local_first = local_elements_;
    piece.first_sharer = first_sharer;
    piece.sharers = sharers;
    piece.partial_gradients = sharers > 1;
    local_elements_ += piece.elements();
    local_rows_ += rows;
    if (rows > 0) pieces_.push_back(std::move(piece));
  }

  ParameterShard Take() && {
    ParameterShard shard;
    shard.local_dims = parameter_.dims;
    shard.local_dims[0] = local_rows_;
    shard.pieces = std::move(pieces_);
    return shard;
  }

 private:
  const ParameterInfo& parameter_;
  const int64_t rank_;
  int64_t local_elements_ = 0;
  int64_t local_rows_ = 0;
  std::vector<ShardPiece> pieces_;
};

ParameterShard Whole(const ParameterInfo& parameter, int64_t tensor, int64_t rank, bool partial_gradients) {
  RowPieces pieces(parameter, rank);
  pieces.AddShared(0, parameter.dims[0], 0, tensor);
  ParameterShard shard = std::move(pieces).Take();
  shard.pieces[0].partial_gradients = partial_gradients && tensor > 1;
  return shard;
}

ParameterShard Vocabulary(const ModelShape& shape, const ParameterInfo& parameter, int64_t tensor, int64_t rank) {
  const int64_t padded = VocabRowsPerTensorRank(shape, tensor);
  const int64_t first = std::min(rank * padded, shape.vocab);
  RowPieces pieces(parameter, rank);
  pieces.Add(first, std::min(first + padded, shape.vocab) - first);
  ParameterShard shard = std::move(pieces).Take();
  shard.local_dims[0] = padded;
  return shard;
}

// Queries, keys, values. With fewer key heads than ranks, tensor / kv_heads neighbours share one.
ParameterShard Qkv(const ModelShape& shape, const ParameterInfo& parameter, int64_t tensor, int64_t rank) {
  const int64_t head_dim = shape.head_dim();
  const int64_t query_rows = shape.heads / tensor * head_dim;
  const int64_t kv_rows = KvHeadsPerTensorRank(shape, tensor) * head_dim;
  const int64_t sharers = std::max<int64_t>(tensor / shape.kv_heads, 1);
  const int64_t first_sharer = rank / sharers * sharers;
  RowPieces pieces(parameter, rank);
  pieces.Add(rank * query_rows, query_rows);
  for (int64_t block = 0; block < 2; ++block) {
    const int64_t start = (shape.heads + block * shape.kv_heads) * head_dim;
    pieces.AddShared(start + rank / sharers * kv_rows, kv_rows, first_sharer, sharers);
  }
  return std::move(pieces).Take();
}

ParameterShard Columns(const ParameterInfo& parameter, int64_t tensor, int64_t rank) {
  const int64_t columns = parameter.dims[1] / tensor;
  ShardPiece piece;
  piece.offset = {0, rank * columns};
  piece.dims = {parameter.dims[0], columns};
  piece.first_sharer = rank;
  ParameterShard shard;
  shard.local_dims = piece.dims;
  shard.pieces.push_back(std::move(piece));
  return shard;
}

}  // namespace

int64_t ShardPiece::elements() const {
  int64_t product = 1;
  for (const int64_t dim : dims) product *= dim;
  return product;
}

int64_t ParameterShard::local_elements() const {
  int64_t product = 1;
  for (const int64_t dim : local_dims) product *= dim;
  return product;
}

ParameterShard ShardOnTensorRank(const ModelShape& shape, const ParameterInfo& parameter, int64_t tensor,
                                 int64_t rank) {
  MUSTER_CHECK(0 <= rank && rank < tensor, "tensor rank ", rank, " of ", tensor);
  switch (CutOf(parameter.name)) {
    case Cut::kWhole:
      return Whole(parameter, tensor, rank, /*partial_gradients=*/true);
    case Cut::kPositions:
      return Whole(parameter, tensor, rank, /*partial_gradients=*/false);
    case Cut::kVocabulary:
      return Vocabulary(shape, parameter, tensor, rank);
    case Cut::kQkv:
      return Qkv(shape, parameter, tensor, rank);
    case Cut::kGateUp: {
      const int64_t rows = shape.ffn / tensor;
      RowPieces pieces(parameter, rank);
      pieces.Add(rank * rows, rows);
      pieces.Add(shape.ffn + rank * rows, rows);
      return std::move(pieces).Take();
    }
    case Cut::kRows: {
      const int64_t rows = parameter.dims[0] / tensor;
      RowPieces pieces(parameter, rank);
      pieces.Add(rank * rows, rows);
      return std::move(pieces).Take();
    }
    case Cut::kColumns:
      return Columns(parameter, tensor, rank);
  }
  MUSTER_CHECK(false, parameter.name, " has no cut");
  return {};
}

int64_t VocabRowsPerTensorRank(const ModelShape& shape, int64_t tensor) { return (shape.vocab + tensor - 1) / tensor; }

int64_t KvHeadsPerTensorRank(const ModelShape& shape, int64_t tensor) {
  return std::max<int64_t>(shape.kv_heads / tensor, 1);
}

int64_t ParametersOnTensorRank(const ModelShape& shape, int64_t tensor) {
  int64_t count = 0;
  for (const ParameterInfo& parameter : Parameters(shape)) {
    for (const ShardPiece& piece : ShardOnTensorRank(shape, parameter, tensor, 0).pieces) count += piece.elements();
  }
  return count;
}

RowBlock ReplicaRows(int64_t rows, int64_t data, int64_t d) { return {rows * d / data, rows * (d + 1) / data}; }

}  // namespace muster
