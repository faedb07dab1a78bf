// Which part of each logical parameter a rank holds: tensor parallelism cuts a parameter into pieces (Megatron-LM:
// Shoeybi et al. 2019, section 3), and the data-parallel replicas share the work on a piece by rows. What the ledger
// sizes, the reducer sums, the optimizer updates and a checkpoint names as boxes is read from here.
//
// Pure functions of plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/model_shape.h"

namespace muster {

// A box of a logical parameter, in its global coordinates, that a rank holds densely.
struct ShardPiece {
  std::vector<int64_t> offset;
  std::vector<int64_t> dims;
  int64_t local_first = 0;  // its first element in the rank's local tensor

  // The ranks of the tensor group that hold the same box: [first_sharer, first_sharer + sharers).
  int64_t first_sharer = 0;
  int64_t sharers = 1;

  // Whether each sharer's gradient is a part and the parts must be added over the sharers. False where every sharer
  // computes the whole gradient (positions) or there is one sharer.
  bool partial_gradients = false;

  int64_t elements() const;
  int64_t rows() const { return dims.empty() ? 1 : dims[0]; }
  int64_t row_elements() const { return rows() == 0 ? 0 : elements() / rows(); }
};

struct ParameterShard {
  // As the kernels see it: (out, in) of this rank. The vocabulary is padded to a multiple of the tensor size; padding
  // rows are in no piece and stay zero.
  std::vector<int64_t> local_dims;
  std::vector<ShardPiece> pieces;  // in the order of local_first

  int64_t local_elements() const;
};

// REQUIRES: tensor divides heads and ffn; it divides kv_heads, or kv_heads divides it; 0 <= rank < tensor.
//
// Column-parallel linears are cut by rows of the weight, and of the bias: qkv into the rank's query heads, key heads
// and value heads; gate_up into its part of the gate and of the up projection. Row-parallel weights (projection, down)
// are cut by columns. Tables of tokens are cut by rows. Everything else is held whole by every rank.
ParameterShard ShardOnTensorRank(const ModelShape& shape, const ParameterInfo& parameter, int64_t tensor, int64_t rank);

// Rows of the token table and of the head on one tensor rank, padding included.
int64_t VocabRowsPerTensorRank(const ModelShape& shape, int64_t tensor);

// Key and value heads that one tensor rank computes.
int64_t KvHeadsPerTensorRank(const ModelShape& shape, int64_t tensor);

// Elements that one rank of a tensor group of this size holds of the whole model, without padding; of rank 0.
int64_t ParametersOnTensorRank(const ModelShape& shape, int64_t tensor);

// [first, last) of `rows`: the block of a piece that replica `d` of `data` reduces, writes to checkpoints and, with a
// sharded optimizer, alone updates. Blocks are empty where there are fewer rows than replicas.
struct RowBlock {
  int64_t first = 0;
  int64_t last = 0;
};
RowBlock ReplicaRows(int64_t rows, int64_t data, int64_t d);

}  // namespace muster
