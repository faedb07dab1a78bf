// Attention by thread blocks (Dao et al. 2022, "FlashAttention", algorithms 1 and 4): a block does one tile of queries,
// or of keys, of one head from beginning to end in shared memory, so that all heads of all sequences run at once and
// nothing but the result is written.
//
// A block kernel is a struct whose operator()(block, shared, b) does block b of blocks() with shared_floats() of shared
// memory, by a policy:
//
// - block.for_each(n, f): f(i) for every i below n, at once and in any order; what was written before is seen after.
//
// There must be no communication inside one for_each. So a plain loop computes what a thread block does,
// and the tests run these kernels on the processor. Plain C++17.
#pragma once

#include <cstdint>

#include "worker/kernels/blocks/tile.h"
#include "worker/kernels/formulas.h"
#include "worker/kernels/kernels.h"

namespace muster::kernels {

// What the three kernels share: the tensors of an attention (kernels.h) and the tiles into which its heads are cut.
// Tiles of queries and of keys have kTile rows, at the same positions.
template <typename T, int kTile>
struct AttentionBlocks {
  AttentionShape shape;
  const T* qkv;
  const int32_t* starts;  // of documents, or null
  int64_t qkv_stride;
  float scale;  // of the scores

  MUSTER_ROW_BODY int64_t tiles() const { return TilesOf(shape); }
  MUSTER_ROW_BODY int32_t head_dim() const { return static_cast<int32_t>(shape.head_dim); }
  // Of the tile that starts there; the last one may be short.
  MUSTER_ROW_BODY int32_t rows(int64_t position) const {
    const int64_t rest = shape.sequence - position;
    return static_cast<int32_t>(rest < kTile ? rest : kTile);
  }
  // Of a row of q (slot = head), k (heads + key head), v, or out, in a tensor whose rows are `stride` apart.
  MUSTER_ROW_BODY int64_t offset(int64_t stride, int64_t sequence, int64_t slot, int64_t position) const {
    return (sequence * shape.sequence + position) * stride + slot * shape.head_dim;
  }
  MUSTER_ROW_BODY int64_t lse_offset(int64_t sequence, int64_t head, int64_t position) const {
    return (sequence * shape.heads + head) * shape.sequence + position;
  }
  MUSTER_ROW_BODY int64_t start_of(int64_t sequence, int64_t position) const {
    return starts == nullptr ? 0 : starts[sequence * shape.sequence + position];
  }
  // Where the first tile of keys starts that the queries from `position` on see.
  MUSTER_ROW_BODY int64_t first_key(int64_t sequence, int64_t position) const {
    const int64_t start = start_of(sequence, position);
    return start < 0 ? 0 : start / kTile * kTile;
  }
  MUSTER_ROW_BODY bool sees(int64_t sequence, int64_t query, int64_t key) const {
    return query < shape.sequence && key <= query && key >= start_of(sequence, query);
  }

  static MUSTER_BLOCK_HOST int64_t TilesOf(const AttentionShape& shape) { return (shape.sequence + kTile - 1) / kTile; }
};

// Block b: out and lse of one tile of queries.
template <typename T, int kTile>
struct AttentionForwardBlocks : AttentionBlocks<T, kTile> {
  T* out;
  int64_t out_stride;
  float* lse;

  int64_t blocks() const { return this->shape.batch * this->shape.heads * this->TilesOf(this->shape); }
  int64_t shared_floats() const {
    return 3 * Tile<kTile>::Floats(this->shape.head_dim) + Square<kTile>::kFloats + 3 * kTile;
  }

  template <typename Block>
  MUSTER_ROW_BODY void operator()(const Block& block, float* shared, int64_t b) const {
    // Those with most keys first, so that none of them is last to begin.
    const int64_t query = (this->tiles() - 1 - b % this->tiles()) * kTile;
    const int64_t head = b / this->tiles() % this->shape.heads;
    const int64_t sequence = b / this->tiles() / this->shape.heads;
    const int64_t key_head = head / (this->shape.heads / this->shape.kv_heads);
    const int32_t queries = this->rows(query);
    const Tile<kTile> query_tile(shared, this->head_dim());
    const Tile<kTile> key_tile(query_tile.end(), this->head_dim());  // then values
    const Tile<kTile> sums(key_tile.end(), this->head_dim());
    const Square<kTile> scores(sums.end());
    float* const top = scores.end();      // running maximum of the scaled scores
    float* const total = top + kTile;     // running sum of the probabilities
    float* const shrink = total + kTile;  // exp(top before - top now)

    query_tile.Load(block, this->qkv + this->offset(this->qkv_stride, sequence, head, query), this->qkv_stride,
                    queries);
    sums.Clear(block);
    block.for_each(kTile, [&](int32_t r) {
      top[r] = FloatOfBits(0xff800000u);  // -infinity
      total[r] = 0;
    });
    for (int64_t key = this->first_key(sequence, query); key <= query; key += kTile) {
      const T* const keys = this->qkv + this->offset(this->qkv_stride, sequence, this->shape.heads + key_head, key);
      key_tile.Load(block, keys, this->qkv_stride, this->rows(key));
      MultiplySquare<kTile>(block, query_tile.plain(), key_tile.transposed(), query_tile.width(), scores);
      block.for_each(kTile, [&](int32_t r) {
        const float before = top[r];
        float now = before;
        for (int32_t c = 0; c < kTile; ++c) {
          if (this->sees(sequence, query + r, key + c)) now = Maximum(this->scale * scores.at(r, c), now);
        }
        // Both are -infinity when the query has seen no key yet.
        shrink[r] = before == now ? 1.0f : Exp(before - now);
        top[r] = now;
      });
      block.for_each(kTile * kTile, [&](int32_t i) {
        const int32_t r = i / kTile, c = i % kTile;
        const bool visible = this->sees(sequence, query + r, key + c);
        scores.at(r, c) = visible ? Exp(this->scale * scores.at(r, c) - top[r]) : 0.0f;
      });
      block.for_each(kTile, [&](int32_t r) {
        float sum = 0;
        for (int32_t c = 0; c < kTile; ++c) sum += scores.at(r, c);
        total[r] = total[r] * shrink[r] + sum;
      });
      sums.ScaleRows(block, shrink);
      const T* const values = this->qkv + this->offset(this->qkv_stride, sequence,
                                                       this->shape.heads + this->shape.kv_heads + key_head, key);
      key_tile.Load(block, values, this->qkv_stride, this->rows(key));
      AddProduct<kTile>(block, scores.plain(), key_tile.plain(), sums);
    }
    block.for_each(kTile, [&](int32_t r) {
      if (r < queries) lse[this->lse_offset(sequence, head, query) + r] = top[r] + Logarithm(total[r]);
      total[r] = 1.0f / total[r];
    });
    sums.ScaleRows(block, total);
    sums.Store(block, out + this->offset(out_stride, sequence, head, query), out_stride, queries);
  }
};

// What the two backward kernels share.
template <typename T, int kTile>
struct AttentionGradientBlocks : AttentionBlocks<T, kTile> {
  const T* d_out;
  const T* out;
  const float* lse;
  T* d_qkv;
  int64_t d_out_stride, out_stride, d_qkv_stride;

  // The queries of a tile and what is known of them: d_outs and correction = sum(d_out * out), which the gradient of
  // every score of the row subtracts.
  template <typename Block>
  MUSTER_ROW_BODY void LoadQueries(const Block& block, int64_t sequence, int64_t head, int64_t query,
                                   const Tile<kTile>& query_tile, const Tile<kTile>& d_outs, float* correction) const {
    const int32_t queries = this->rows(query);
    d_outs.Load(block, d_out + this->offset(d_out_stride, sequence, head, query), d_out_stride, queries);
    query_tile.Load(block, out + this->offset(out_stride, sequence, head, query), out_stride, queries);
    block.for_each(kTile, [&](int32_t r) {
      float sum = 0;
      for (int32_t c = 0; c < query_tile.width(); ++c) sum += d_outs.at(r, c) * query_tile.at(r, c);
      correction[r] = sum;
    });
    query_tile.Load(block, this->qkv + this->offset(this->qkv_stride, sequence, head, query), this->qkv_stride,
                    queries);
  }

  // scores become the probabilities exp(scale * score - lse) and d_probabilities the scores' gradients; both 0 for
  // hidden keys.
  template <typename Block>
  MUSTER_ROW_BODY void Differentiate(const Block& block, int64_t sequence, int64_t head, int64_t query, int64_t key,
                                     const Square<kTile>& scores, const Square<kTile>& d_probabilities,
                                     const float* correction) const {
    const float* const log_sums = lse + this->lse_offset(sequence, head, query);
    block.for_each(kTile * kTile, [&](int32_t i) {
      const int32_t r = i / kTile, c = i % kTile;
      const bool visible = this->sees(sequence, query + r, key + c);
      const float p = visible ? Exp(this->scale * scores.at(r, c) - log_sums[r]) : 0.0f;
      scores.at(r, c) = p;
      d_probabilities.at(r, c) = visible ? p * (d_probabilities.at(r, c) - correction[r]) * this->scale : 0.0f;
    });
  }
};

// Block b: d_qkv of one tile of queries.
template <typename T, int kTile>
struct AttentionQueryGradientBlocks : AttentionGradientBlocks<T, kTile> {
  int64_t blocks() const { return this->shape.batch * this->shape.heads * this->TilesOf(this->shape); }
  int64_t shared_floats() const {
    return 5 * Tile<kTile>::Floats(this->shape.head_dim) + 2 * Square<kTile>::kFloats + kTile;
  }

  template <typename Block>
  MUSTER_ROW_BODY void operator()(const Block& block, float* shared, int64_t b) const {
    const int64_t query = (this->tiles() - 1 - b % this->tiles()) * kTile;
    const int64_t head = b / this->tiles() % this->shape.heads;
    const int64_t sequence = b / this->tiles() / this->shape.heads;
    const int64_t key_head = head / (this->shape.heads / this->shape.kv_heads);
    const Tile<kTile> query_tile(shared, this->head_dim());
    const Tile<kTile> d_outs(query_tile.end(), this->head_dim());
    const Tile<kTile> key_tile(d_outs.end(), this->head_dim());
    const Tile<kTile> value_tile(key_tile.end(), this->head_dim());
    const Tile<kTile> d_queries(value_tile.end(), this->head_dim());
    const Square<kTile> scores(d_queries.end());
    const Square<kTile> d_probabilities(scores.end());
    float* const correction = d_probabilities.end();

    this->LoadQueries(block, sequence, head, query, query_tile, d_outs, correction);
    d_queries.Clear(block);
    for (int64_t key = this->first_key(sequence, query); key <= query; key += kTile) {
      const int64_t key_slot = this->shape.heads + key_head;
      const int64_t value_slot = key_slot + this->shape.kv_heads;
      key_tile.Load(block, this->qkv + this->offset(this->qkv_stride, sequence, key_slot, key), this->qkv_stride,
                    this->rows(key));
      value_tile.Load(block, this->qkv + this->offset(this->qkv_stride, sequence, value_slot, key), this->qkv_stride,
                      this->rows(key));
      MultiplySquare<kTile>(block, query_tile.plain(), key_tile.transposed(), query_tile.width(), scores);
      MultiplySquare<kTile>(block, d_outs.plain(), value_tile.transposed(), d_outs.width(), d_probabilities);
      this->Differentiate(block, sequence, head, query, key, scores, d_probabilities, correction);
      AddProduct<kTile>(block, d_probabilities.plain(), key_tile.plain(), d_queries);
    }
    d_queries.Store(block, this->d_qkv + this->offset(this->d_qkv_stride, sequence, head, query), this->d_qkv_stride,
                    this->rows(query));
  }
};

// Block b: d_qkv of one tile of keys and values, from all query heads that share them.
template <typename T, int kTile>
struct AttentionKeyGradientBlocks : AttentionGradientBlocks<T, kTile> {
  int64_t blocks() const { return this->shape.batch * this->shape.kv_heads * this->TilesOf(this->shape); }
  int64_t shared_floats() const {
    return 6 * Tile<kTile>::Floats(this->shape.head_dim) + 2 * Square<kTile>::kFloats + kTile;
  }

  template <typename Block>
  MUSTER_ROW_BODY void operator()(const Block& block, float* shared, int64_t b) const {
    const int64_t key = b % this->tiles() * kTile;
    const int64_t key_head = b / this->tiles() % this->shape.kv_heads;
    const int64_t sequence = b / this->tiles() / this->shape.kv_heads;
    const int64_t group = this->shape.heads / this->shape.kv_heads;
    const int64_t key_slot = this->shape.heads + key_head;
    const int64_t value_slot = key_slot + this->shape.kv_heads;
    const Tile<kTile> query_tile(shared, this->head_dim());
    const Tile<kTile> d_outs(query_tile.end(), this->head_dim());
    const Tile<kTile> key_tile(d_outs.end(), this->head_dim());
    const Tile<kTile> value_tile(key_tile.end(), this->head_dim());
    const Tile<kTile> d_keys(value_tile.end(), this->head_dim());
    const Tile<kTile> d_values(d_keys.end(), this->head_dim());
    const Square<kTile> scores(d_values.end());
    const Square<kTile> d_probabilities(scores.end());
    float* const correction = d_probabilities.end();

    key_tile.Load(block, this->qkv + this->offset(this->qkv_stride, sequence, key_slot, key), this->qkv_stride,
                  this->rows(key));
    value_tile.Load(block, this->qkv + this->offset(this->qkv_stride, sequence, value_slot, key), this->qkv_stride,
                    this->rows(key));
    d_keys.Clear(block);
    d_values.Clear(block);
    for (int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
      for (int64_t query = key; query < this->shape.sequence; query += kTile) {
        if (this->first_key(sequence, query) > key) break;  // nor do later queries see these keys
        this->LoadQueries(block, sequence, head, query, query_tile, d_outs, correction);
        MultiplySquare<kTile>(block, query_tile.plain(), key_tile.transposed(), query_tile.width(), scores);
        MultiplySquare<kTile>(block, d_outs.plain(), value_tile.transposed(), d_outs.width(), d_probabilities);
        this->Differentiate(block, sequence, head, query, key, scores, d_probabilities, correction);
        AddProduct<kTile>(block, scores.transposed(), d_outs.plain(), d_values);
        AddProduct<kTile>(block, d_probabilities.transposed(), query_tile.plain(), d_keys);
      }
    }
    d_keys.Store(block, this->d_qkv + this->offset(this->d_qkv_stride, sequence, key_slot, key), this->d_qkv_stride,
                 this->rows(key));
    d_values.Store(block, this->d_qkv + this->offset(this->d_qkv_stride, sequence, value_slot, key), this->d_qkv_stride,
                   this->rows(key));
  }
};

}  // namespace muster::kernels
