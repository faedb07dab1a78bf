// What the operations of kernels.h share that are row kernels and nothing else: shapes are checked, pointers gathered,
// and the back-end launches. Only for the sources of this folder, which are compiled into each back-end.
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

// Whether an optional tensor was passed.
inline bool IsGiven(const Tensor& optional) { return optional.data != nullptr; }

}  // namespace muster::kernels
