// A tensor that owns nothing: a pointer into an arena, its dimensions and its element type. Copied freely.
//
// No Abseil and no protobuf here: CUDA sources include this file. Plain C++17.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace muster {

enum class DType : uint8_t { kF32, kBF16, kF16, kI32, kU8 };

constexpr int64_t SizeOf(DType type) {
  switch (type) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBF16:
    case DType::kF16:
      return 2;
    case DType::kU8:
      return 1;
  }
  return 0;
}

// Row-major and dense but for the row stride: the last dimension is contiguous, and a step in the one before it is
// `row_stride` elements. At most four dimensions. Thread-compatible.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int rank = 0;                   // dimensions in use
  std::array<int64_t, 4> dims{};  // outermost first
  int64_t row_stride = 0;         // elements; dims[rank-1] when dense

  Tensor() = default;
  Tensor(void* data_in, DType dtype_in, std::initializer_list<int64_t> dims_in) : data(data_in), dtype(dtype_in) {
    for (int64_t dim : dims_in) dims[static_cast<size_t>(rank++)] = dim;
    row_stride = rank == 0 ? 0 : dims[static_cast<size_t>(rank - 1)];
  }

  int64_t elements() const {
    int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= dims[static_cast<size_t>(i)];
    return count;
  }
  int64_t cols() const { return rank == 0 ? 0 : dims[static_cast<size_t>(rank - 1)]; }
  int64_t rows() const { return cols() == 0 ? 0 : elements() / cols(); }
  int64_t bytes() const { return elements() * SizeOf(dtype); }  // of a dense tensor

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }

  // Columns [first, first + count) of a two-dimensional tensor, sharing its memory.
  Tensor columns(int64_t first, int64_t count) const {
    Tensor view = *this;
    view.data = static_cast<char*>(data) + first * SizeOf(dtype);
    view.dims[static_cast<size_t>(rank - 1)] = count;
    return view;
  }

  // Entries [first, first + count) of the outermost dimension, sharing its memory. REQUIRES: dense, or two-dimensional.
  Tensor slice(int64_t first, int64_t count) const {
    Tensor view = *this;
    const int64_t stride = rank == 2 ? row_stride : elements() / dims[0];
    view.data = static_cast<char*>(data) + first * stride * SizeOf(dtype);
    view.dims[0] = count;
    if (rank == 1) view.row_stride = count;
    return view;
  }
};

// Without gaps between rows.
inline bool IsDense(const Tensor& tensor) { return tensor.row_stride == tensor.cols() || tensor.rows() == 1; }

}  // namespace muster
