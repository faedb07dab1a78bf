// Token and position tables: looked up forward, summed into backward. Plain C++17.
#pragma once

#include <cstdint>

#include "worker/kernels/formulas.h"

namespace muster::kernels {

// out = token_weight[token - first_token], zero for a token that the table does not have,
// + position_weight[row mod sequence_length] unless that is null. A token outside the vocabulary gives a row of NaN.
template <typename T>
struct EmbeddingForwardRows {
  static constexpr bool kColumnsIndependent = true;
  const int32_t* tokens;
  const T* token_weight;
  const T* position_weight;
  T* out;
  int64_t first_token, table_rows, vocab, sequence_length, out_stride;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    const int64_t token = tokens[r];
    T* const out_row = out + r * out_stride;
    if (token < 0 || token >= vocab) {
      row.store(out_row, [&](auto) { return FloatOfBits(0x7fc00000u); });
      return;
    }
    const int64_t entry = token - first_token;
    const bool here = entry >= 0 && entry < table_rows;
    // Decided here and not for each element, where it would keep f16's loop scalar.
    if (!here && position_weight == nullptr) {
      row.store(out_row, [&](auto) { return 0.0f; });
      return;
    }
    const auto words = row.load(token_weight + (here ? entry : 0) * row.cols());
    if (position_weight == nullptr) {
      row.store(out_row, [&](auto i) { return words[i]; });
      return;
    }
    const auto places = row.load(position_weight + r % sequence_length * row.cols());
    if (here) {
      row.store(out_row, [&](auto i) { return words[i] + places[i]; });
    } else {
      row.store(out_row, [&](auto i) { return places[i]; });
    }
  }
};

// One row: d_token_weight[tokens[t] - first_token] += d_out[t] for every t in order, where there is such a row; each
// column by itself, so that no two threads meet at an element.
template <typename T>
struct EmbeddingTokenRows {
  static constexpr bool kColumnsIndependent = true;
  const int32_t* tokens;
  const T* d_out;
  float* d_token_weight;
  int64_t rows, first_token, table_rows, d_out_stride;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t) const {
    for (int64_t t = 0; t < rows; ++t) {
      const int64_t entry = tokens[t] - first_token;
      if (entry < 0 || entry >= table_rows) continue;
      float* const sums = d_token_weight + entry * row.cols();
      row.add_rows(t, t + 1, sums, true, [&](int64_t from) {
        const auto values = row.load(d_out + from * d_out_stride);
        return [=](auto i) { return values[i]; };
      });
    }
  }
};

// Row r: d_position_weight[r] += the sum of d_out over the sequences of the batch, in order.
template <typename T>
struct EmbeddingPositionRows {
  static constexpr bool kColumnsIndependent = true;
  const T* d_out;
  float* d_position_weight;
  int64_t batch, sequence_length, d_out_stride;

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t r) const {
    row.add_rows(0, batch, d_position_weight + r * row.cols(), true, [&](int64_t sequence) {
      const auto values = row.load(d_out + (sequence * sequence_length + r) * d_out_stride);
      return [=](auto i) { return values[i]; };
    });
  }
};

}  // namespace muster::kernels
