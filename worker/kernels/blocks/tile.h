// Matrices in the shared memory of a thread block, and their products. What `block` is: blocks/attention.h.
//
// All f32. A product is cut over kSide x kSide items, a thread each, that do every kSide-th row and column:
// neighbouring threads then read neighbouring banks, and each value read from shared memory serves four
// multiplications. Plain C++17.
#pragma once

#include <cstdint>

#include "worker/kernels/formulas.h"

// MUSTER_BLOCK_HOST: a function that the launcher and the kernel both call.
#ifdef __CUDACC__
#define MUSTER_BLOCK_HOST __host__ __device__
#else
#define MUSTER_BLOCK_HOST
#endif

namespace muster::kernels {

inline constexpr int32_t kSide = 16;
inline constexpr int32_t kBlockThreads = kSide * kSide;

// How a product reads a matrix: element (row, col) is at[row * row_step + col * col_step].
struct Operand {
  const float* at;
  int32_t row_step, col_step;
};

// kRows rows of a head's elements: head_dim columns, filled up with zeros to `width`, a multiple of kSide. A row is an
// odd number of floats, so that a column lies in different banks.
template <int kRows>
class Tile {
 public:
  MUSTER_ROW_BODY Tile(float* start, int32_t head_dim) : start_(start), head_dim_(head_dim) {}

  static MUSTER_BLOCK_HOST int64_t Floats(int64_t head_dim) {
    return kRows * ((head_dim + kSide - 1) / kSide * kSide + 1);
  }

  MUSTER_ROW_BODY int32_t width() const { return (head_dim_ + kSide - 1) / kSide * kSide; }
  MUSTER_ROW_BODY int32_t stride() const { return width() + 1; }
  MUSTER_ROW_BODY float& at(int32_t row, int32_t col) const { return start_[row * stride() + col]; }
  MUSTER_ROW_BODY float* end() const { return start_ + kRows * stride(); }
  MUSTER_ROW_BODY Operand plain() const { return Operand{start_, stride(), 1}; }
  MUSTER_ROW_BODY Operand transposed() const { return Operand{start_, 1, stride()}; }

  // The first `rows` rows, zeros below them.
  template <typename Block, typename T>
  MUSTER_ROW_BODY void Load(const Block& block, const T* from, int64_t from_stride, int32_t rows) const {
    block.for_each(kRows * width(), [&](int32_t i) {
      const int32_t r = i / width(), c = i % width();
      at(r, c) = r < rows && c < head_dim_ ? ToFloat(from[r * from_stride + c]) : 0.0f;
    });
  }

  template <typename Block, typename T>
  MUSTER_ROW_BODY void Store(const Block& block, T* to, int64_t to_stride, int32_t rows) const {
    block.for_each(rows * head_dim_, [&](int32_t i) {
      const int32_t r = i / head_dim_, c = i % head_dim_;
      to[r * to_stride + c] = FromFloat(at(r, c), T{});
    });
  }

  template <typename Block>
  MUSTER_ROW_BODY void Clear(const Block& block) const {
    block.for_each(kRows * width(), [&](int32_t i) { at(i / width(), i % width()) = 0.0f; });
  }

  template <typename Block>
  MUSTER_ROW_BODY void ScaleRows(const Block& block, const float* factors) const {
    block.for_each(kRows * width(), [&](int32_t i) { at(i / width(), i % width()) *= factors[i / width()]; });
  }

 private:
  float* const start_;
  const int32_t head_dim_;
};

// (queries, keys): kRows x kRows scores.
template <int kRows>
class Square {
 public:
  static constexpr int32_t kStride = kRows + 1;
  static constexpr int64_t kFloats = kRows * kStride;

  MUSTER_ROW_BODY explicit Square(float* start) : start_(start) {}

  MUSTER_ROW_BODY float& at(int32_t row, int32_t col) const { return start_[row * kStride + col]; }
  MUSTER_ROW_BODY float* end() const { return start_ + kFloats; }
  MUSTER_ROW_BODY Operand plain() const { return Operand{start_, kStride, 1}; }
  MUSTER_ROW_BODY Operand transposed() const { return Operand{start_, 1, kStride}; }

 private:
  float* const start_;
};

// Calls result(row, col, sum) for every element of a (kRows, depth) x b (depth, cols); cols is a multiple of kSide. An
// item has every kSide-th of kRows rows and of up to kCols columns.
template <int kRows, int kCols, typename Block, typename Result>
MUSTER_ROW_BODY void ForEachProduct(const Block& block, const Operand& a, const Operand& b, int32_t depth, int32_t cols,
                                    Result result) {
  constexpr int32_t kDown = kRows / kSide;
  constexpr int32_t kAcross = kCols / kSide;
  const int32_t groups = (cols + kCols - 1) / kCols;
  block.for_each(groups * kBlockThreads, [&](int32_t item) {
    const int32_t row = item / kSide % kSide;
    const int32_t col = item / kBlockThreads * kCols + item % kSide;
    const float* as[kDown];
    const float* bs[kAcross];
    float sums[kDown][kAcross] = {};
    for (int32_t i = 0; i < kDown; ++i) as[i] = a.at + (row + i * kSide) * a.row_step;
    for (int32_t j = 0; j < kAcross; ++j) {
      const bool inside = col + j * kSide < cols;  // those outside are computed from the first, and dropped
      bs[j] = b.at + (inside ? col + j * kSide : col) * b.col_step;
    }
    for (int32_t k = 0; k < depth; ++k) {
      for (int32_t i = 0; i < kDown; ++i) {
        for (int32_t j = 0; j < kAcross; ++j)
          sums[i][j] = MultiplyAdd(as[i][k * a.col_step], bs[j][k * b.row_step], sums[i][j]);
      }
    }
    for (int32_t i = 0; i < kDown; ++i) {
      for (int32_t j = 0; j < kAcross; ++j) {
        if (col + j * kSide < cols) result(row + i * kSide, col + j * kSide, sums[i][j]);
      }
    }
  });
}

// out = a (kRows, depth) x b (depth, kRows).
template <int kRows, typename Block>
MUSTER_ROW_BODY void MultiplySquare(const Block& block, const Operand& a, const Operand& b, int32_t depth,
                                    const Square<kRows>& out) {
  ForEachProduct<kRows, kRows>(block, a, b, depth, kRows,
                               [&](int32_t row, int32_t col, float sum) { out.at(row, col) = sum; });
}

// out += a (kRows, kRows) x b (kRows, width of out).
template <int kRows, typename Block>
MUSTER_ROW_BODY void AddProduct(const Block& block, const Operand& a, const Operand& b, const Tile<kRows>& out) {
  ForEachProduct<kRows, 4 * kSide>(block, a, b, kRows, out.width(),
                                   [&](int32_t row, int32_t col, float sum) { out.at(row, col) += sum; });
}

}  // namespace muster::kernels
