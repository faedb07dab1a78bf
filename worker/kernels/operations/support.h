// What the operations that are row kernels and nothing else share: types become templates, shapes are checked. A wrong
// shape is a bug: the process aborts saying which.
//
// The files of this folder define what kernels.h declares, and are compiled into each back-end.
#pragma once

#include <cstdint>

#include "common/base/check.h"
#include "worker/kernels/context.h"
#include "worker/kernels/kernels.h"
#include "worker/kernels/launch.h"

namespace muster::kernels {

// Calls f with a value of the element type.
template <typename F>
void WithType(DType dtype, F f) {
  switch (dtype) {
    case DType::kF32:
      return f(float{});
    case DType::kBF16:
      return f(BF16{});
    case DType::kF16:
      return f(F16{});
    case DType::kI32:
    case DType::kU8:
      break;
  }
  MUSTER_CHECK(false, "not a floating-point type: ", static_cast<int>(dtype));
}

inline void CheckShape(const Tensor& tensor, DType dtype, int64_t rows, int64_t cols) {
  MUSTER_CHECK(tensor.dtype == dtype, "element type ", static_cast<int>(tensor.dtype), ", wanted ",
               static_cast<int>(dtype));
  MUSTER_CHECK(tensor.rows() == rows && tensor.cols() == cols, "shape (", tensor.rows(), ", ", tensor.cols(),
               "), wanted (", rows, ", ", cols, ")");
}

inline void CheckVector(const Tensor& tensor, DType dtype, int64_t count) {
  MUSTER_CHECK(tensor.dtype == dtype, "element type ", static_cast<int>(tensor.dtype), ", wanted ",
               static_cast<int>(dtype));
  MUSTER_CHECK(tensor.elements() == count && IsDense(tensor), tensor.elements(), " elements, wanted ", count,
               " without gaps");
}

inline bool IsGiven(const Tensor& optional) { return optional.data != nullptr; }

// How elementwise kernels walk tensors of one shape: as a single long row when none has gaps.
struct Walk {
  int64_t rows = 0;
  int64_t cols = 0;
};
template <typename... Tensors>
Walk WalkOf(const Tensor& first, const Tensors&... rest) {
  if (IsDense(first) && (IsDense(rest) && ...)) return Walk{1, first.elements()};
  return Walk{first.rows(), first.cols()};
}

}  // namespace muster::kernels
