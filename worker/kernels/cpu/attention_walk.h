// The walk over attention's tiles of kAttentionTile queries x keys, forward and backward, for one head at a time, by
// one thread: products by oneDNN, softmax by row kernels.
//
// What a head's tiles are and in which order they are added depends on the shape of the head alone: its bits do not
// change with the batch, the number of threads or the device's size.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "worker/kernels/cpu/matmul_onednn.h"
#include "worker/kernels/cpu/row_table.h"
#include "worker/kernels/kernels.h"
#include "worker/kernels/row_kernels.h"

namespace muster::kernels {

// One executor's part of the workspace.
struct AttentionTiles {
  AttentionTiles(float* start, const AttentionShape& shape) {
    const auto take = [&start](int64_t floats) {
      float* const taken = start;
      start += floats;
      return taken;
    };
    const int64_t group = shape.heads / shape.kv_heads;
    scores = take(kAttentionTile * kAttentionTile);
    d_probabilities = take(kAttentionTile * kAttentionTile);
    probabilities = take(kAttentionTile * kAttentionTile);
    d_scores = take(kAttentionTile * kAttentionTile);
    first_sums = take(kAttentionTile * shape.head_dim);
    second_sums = take(kAttentionTile * shape.head_dim);
    top = take(kAttentionTile);
    total = take(kAttentionTile);
    shrink = take(kAttentionTile);
    d_queries = take(group * shape.sequence * shape.head_dim);
    correction = take(group * shape.sequence);
  }

  float* scores;           // (queries, keys)
  float* d_probabilities;  // (queries, keys)
  float* probabilities;    // (queries, keys), compute type
  float* d_scores;         // (queries, keys), compute type
  float* first_sums;       // (queries, head_dim) of values, or (keys, head_dim) of key gradients
  float* second_sums;      // (keys, head_dim) of value gradients
  float* top;              // (queries)
  float* total;            // (queries)
  float* shrink;           // (queries)
  float* d_queries;        // (group, sequence, head_dim)
  float* correction;       // (group, sequence)
};

inline Tensor Box(const Tensor& tensor, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  Tensor box(static_cast<char*>(tensor.data) + (row * tensor.row_stride + col) * SizeOf(tensor.dtype), tensor.dtype,
             {rows, cols});
  box.row_stride = tensor.row_stride;
  return box;
}

// Where one thread's products and row kernels run.
class ThreadExecutor {
 public:
  ThreadExecutor(const RowTable& rows, OneDnnMatMul& matmul) : rows_(rows), matmul_(matmul) {}

  void Multiply(const MatMulArgs& args) const { matmul_.Run(args); }

  template <typename Kernel>
  void Rows(const Kernel& kernel, int64_t rows, int64_t cols) const {
    RunRows(rows_, kernel, RowBox{0, rows, cols, 0, cols});
  }

  // A tile of scores of which query r sees no key after diagonal + r. Leaves out columns that are hidden so, and makes
  // them zero in `results`, rows of kAttentionTile elements.
  template <typename Kernel, typename T>
  void TileRows(const Kernel& kernel, int64_t queries, int64_t keys, int64_t diagonal,
                std::initializer_list<T*> results) const {
    constexpr int64_t kBand = 32;  // rows; a quarter of a tile, of whole SIMD registers
    for (int64_t row = 0; row < queries; row += kBand) {
      const int64_t end = std::min(queries, row + kBand);
      const int64_t visible = std::min(keys, diagonal + row + kBand);
      RunRows(rows_, kernel, RowBox{row, end, visible, 0, visible});
      if (visible == keys) continue;
      for (T* const result : results) {
        for (int64_t r = row; r < end; ++r) {
          std::memset(static_cast<void*>(result + r * kAttentionTile + visible), 0,
                      static_cast<size_t>(keys - visible) * sizeof(T));
        }
      }
    }
  }

 private:
  const RowTable& rows_;
  OneDnnMatMul& matmul_;
};

// One head at a time.
template <typename T>
class AttentionWalk {
 public:
  // starts: of documents (AttentionInput), or null. workspace: AttentionWorkspaceBytes(shape, 1) bytes.
  AttentionWalk(const ThreadExecutor& executor, const AttentionShape& shape, const int32_t* starts, DType compute,
                float* workspace)
      : executor_(executor),
        shape_(shape),
        starts_(starts),
        compute_(compute),
        scale_(static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)))),
        tiles_(workspace, shape) {}

  void Forward(int64_t sequence, int64_t head, const Tensor& qkv, const Tensor& out, float* lse) {
    for (int64_t query = 0; query < shape_.sequence; query += kAttentionTile) {
      const int64_t queries = TileSize(query);
      const Tensor sums(tiles_.first_sums, DType::kF32, {queries, shape_.head_dim});
      const int64_t first_key = FirstKeyTile(sequence, query);
      for (int64_t key = first_key; key <= query; key += kAttentionTile) {
        const int64_t keys = TileSize(key);
        const Tensor scores = ScoreTile(tiles_.scores, DType::kF32, queries, keys);
        const Tensor probabilities = ScoreTile(tiles_.probabilities, compute_, queries, keys);
        Multiply(Queries(qkv, sequence, head, query), Keys(qkv, sequence, KeyHead(head), key), scores, kTransposeB,
                 false);
        executor_.TileRows(
            SoftmaxTileRows<T>{scores.as<float>(), probabilities.as<T>(), tiles_.top, tiles_.total, tiles_.shrink,
                               kAttentionTile, Visible(sequence, query, key), scale_, key == first_key},
            queries, keys, query - key, {probabilities.as<T>()});
        if (key > first_key) {
          executor_.Rows(ShrinkRows{tiles_.first_sums, tiles_.shrink, shape_.head_dim}, queries, shape_.head_dim);
        }
        Multiply(probabilities, Values(qkv, sequence, KeyHead(head), key), sums, kPlain, key > first_key);
      }
      const Tensor out_tile = Queries(out, sequence, head, query);
      executor_.Rows(FinishAttentionRows<T>{tiles_.first_sums, tiles_.top, tiles_.total, out_tile.as<T>(), lse + query,
                                            shape_.head_dim, out_tile.row_stride},
                     queries, shape_.head_dim);
    }
  }

  // Gradients of one key head and of the query heads that share it. lse: (group, sequence) of those heads.
  void Backward(int64_t sequence, int64_t key_head, const Tensor& d_out, const Tensor& qkv, const Tensor& out,
                const float* lse, const Tensor& d_qkv) {
    const int64_t group = shape_.heads / shape_.kv_heads;
    const int64_t first_head = key_head * group;
    for (int64_t g = 0; g < group; ++g) {
      const Tensor d_outs =
          Box(d_out, sequence * shape_.sequence, shape_.sequence, (first_head + g) * shape_.head_dim, shape_.head_dim);
      const Tensor outs =
          Box(out, sequence * shape_.sequence, shape_.sequence, (first_head + g) * shape_.head_dim, shape_.head_dim);
      executor_.Rows(AttentionCorrectionRows<T>{d_outs.as<T>(), outs.as<T>(), tiles_.correction + g * shape_.sequence,
                                                d_outs.row_stride, outs.row_stride},
                     shape_.sequence, shape_.head_dim);
    }
    for (int64_t key = 0; key < shape_.sequence; key += kAttentionTile) {
      const int64_t keys = TileSize(key);
      bool accumulate = false;
      for (int64_t g = 0; g < group; ++g) {
        for (int64_t query = key; query < shape_.sequence; query += kAttentionTile) {
          if (FirstKeyTile(sequence, query) > key) break;  // nor do later queries see these keys
          BackwardTile(sequence, first_head + g, g, query, key, d_out, qkv, lse + g * shape_.sequence, accumulate);
          accumulate = true;
        }
      }
      Round(tiles_.first_sums, Keys(d_qkv, sequence, key_head, key), keys);
      Round(tiles_.second_sums, Values(d_qkv, sequence, key_head, key), keys);
    }
    for (int64_t g = 0; g < group; ++g) {
      const Tensor d_queries =
          Box(d_qkv, sequence * shape_.sequence, shape_.sequence, (first_head + g) * shape_.head_dim, shape_.head_dim);
      Round(tiles_.d_queries + g * shape_.sequence * shape_.head_dim, d_queries, shape_.sequence);
    }
  }

 private:
  enum Transpose { kPlain, kTransposeA, kTransposeB };

  int64_t TileSize(int64_t start) const { return std::min(kAttentionTile, shape_.sequence - start); }
  // The first key that a tile of queries needs: of the tile in which the document of its first query starts.
  int64_t FirstKeyTile(int64_t sequence, int64_t query) const {
    if (starts_ == nullptr) return 0;
    return starts_[sequence * shape_.sequence + query] / kAttentionTile * kAttentionTile;
  }
  VisibleKeys Visible(int64_t sequence, int64_t query, int64_t key) const {
    return {query - key, starts_ == nullptr ? nullptr : starts_ + sequence * shape_.sequence + query, key};
  }
  int64_t KeyHead(int64_t head) const { return head / (shape_.heads / shape_.kv_heads); }

  Tensor Slot(const Tensor& tensor, int64_t sequence, int64_t slot, int64_t start) const {
    return Box(tensor, sequence * shape_.sequence + start, TileSize(start), slot * shape_.head_dim, shape_.head_dim);
  }
  // Of qkv, of its gradient, or of out: queries come first along a row.
  Tensor Queries(const Tensor& tensor, int64_t sequence, int64_t head, int64_t start) const {
    return Slot(tensor, sequence, head, start);
  }
  Tensor Keys(const Tensor& qkv, int64_t sequence, int64_t key_head, int64_t start) const {
    return Slot(qkv, sequence, shape_.heads + key_head, start);
  }
  Tensor Values(const Tensor& qkv, int64_t sequence, int64_t key_head, int64_t start) const {
    return Slot(qkv, sequence, shape_.heads + shape_.kv_heads + key_head, start);
  }
  static Tensor ScoreTile(float* data, DType dtype, int64_t queries, int64_t keys) {
    Tensor tile(data, dtype, {queries, keys});
    tile.row_stride = kAttentionTile;
    return tile;
  }

  void Multiply(const Tensor& a, const Tensor& b, const Tensor& out, Transpose transpose, bool accumulate) {
    MatMulArgs args;
    args.a = a;
    args.b = b;
    args.out = out;
    args.transpose_a = transpose == kTransposeA;
    args.transpose_b = transpose == kTransposeB;
    args.accumulate = accumulate;
    executor_.Multiply(args);
  }

  void Round(const float* sums, const Tensor& to, int64_t rows) {
    executor_.Rows(CastRows<float, T>{sums, to.as<T>(), shape_.head_dim, to.row_stride}, rows, shape_.head_dim);
  }

  // Adds one tile's part to the gradients of its queries, keys and values.
  void BackwardTile(int64_t sequence, int64_t head, int64_t g, int64_t query, int64_t key, const Tensor& d_out,
                    const Tensor& qkv, const float* lse, bool accumulate_keys) {
    const int64_t queries = TileSize(query);
    const int64_t keys = TileSize(key);
    const Tensor query_tile = Queries(qkv, sequence, head, query);
    const Tensor key_tile = Keys(qkv, sequence, KeyHead(head), key);
    const Tensor d_out_tile = Queries(d_out, sequence, head, query);
    const Tensor scores = ScoreTile(tiles_.scores, DType::kF32, queries, keys);
    const Tensor d_probabilities = ScoreTile(tiles_.d_probabilities, DType::kF32, queries, keys);
    const Tensor probabilities = ScoreTile(tiles_.probabilities, compute_, queries, keys);
    const Tensor d_scores = ScoreTile(tiles_.d_scores, compute_, queries, keys);
    Multiply(query_tile, key_tile, scores, kTransposeB, false);
    Multiply(d_out_tile, Values(qkv, sequence, KeyHead(head), key), d_probabilities, kTransposeB, false);
    executor_.TileRows(SoftmaxGradientRows<T>{scores.as<float>(), d_probabilities.as<float>(), lse + query,
                                              tiles_.correction + g * shape_.sequence + query, probabilities.as<T>(),
                                              d_scores.as<T>(), kAttentionTile, Visible(sequence, query, key), scale_},
                       queries, keys, query - key, {probabilities.as<T>(), d_scores.as<T>()});
    const Tensor d_keys(tiles_.first_sums, DType::kF32, {keys, shape_.head_dim});
    const Tensor d_values(tiles_.second_sums, DType::kF32, {keys, shape_.head_dim});
    const Tensor d_queries(tiles_.d_queries + (g * shape_.sequence + query) * shape_.head_dim, DType::kF32,
                           {queries, shape_.head_dim});
    Multiply(probabilities, d_out_tile, d_values, kTransposeA, accumulate_keys);
    Multiply(d_scores, query_tile, d_keys, kTransposeA, accumulate_keys);
    Multiply(d_scores, key_tile, d_queries, kPlain, key > FirstKeyTile(sequence, query));
  }

  const ThreadExecutor executor_;
  const AttentionShape shape_;
  const int32_t* const starts_;
  const DType compute_;
  const float scale_;
  const AttentionTiles tiles_;
};

}  // namespace muster::kernels
