// What the tests of kernels share: a context of their own, tensors with their memory, and comparison with f64
// references.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worker/kernels/context.h"
#include "worker/kernels/kernels.h"
#include "worker/tensor/view.h"

namespace muster {

// A tensor and its memory. Rows may have gaps between them, which must stay as they were made.
class OwnedTensor {
 public:
  // Zeros. row_stride 0 means dense.
  OwnedTensor(DType dtype, int64_t rows, int64_t cols, int64_t row_stride = 0);
  // Normal values times `scale`, rounded to the type; the same for the same seed.
  static OwnedTensor Random(DType dtype, int64_t rows, int64_t cols, uint64_t seed, double scale = 1,
                            int64_t row_stride = 0);
  // The values in order, rounded to the type.
  static OwnedTensor Of(DType dtype, int64_t rows, int64_t cols, const std::vector<double>& values,
                        int64_t row_stride = 0);

  const Tensor& tensor() const { return tensor_; }
  Tensor vector() const;  // the same memory, one-dimensional
  double at(int64_t row, int64_t col) const;
  double at(int64_t index) const { return at(index / tensor_.cols(), index % tensor_.cols()); }
  void set(int64_t row, int64_t col, double value);
  std::vector<double> values() const;   // row by row, without gaps
  std::vector<uint8_t> memory() const;  // bit for bit, gaps included
  bool gaps_untouched() const;
  OwnedTensor Copy() const;

 private:
  std::shared_ptr<std::vector<uint8_t>> bytes_;
  Tensor tensor_;
};

// A context on the processor with a workspace of exactly the planned size.
class TestContext {
 public:
  explicit TestContext(int threads = 1);
  KernelContext& operator*() const { return *context_; }

 private:
  std::unique_ptr<Device> device_;
  OwnedTensor workspace_;
  std::unique_ptr<KernelContext> context_;
};

// Half a unit in the last place of 1: the largest relative error of one rounding.
double RoundingError(DType dtype);
const char* NameOf(DType dtype);

// Empty when every |actual - expected| <= absolute + relative * |expected| (NaN and infinities must match), else where
// the worst is.
std::string Difference(const std::vector<double>& actual, const std::vector<double>& expected, double absolute,
                       double relative);

// The f64 reference of (m, k) x (k, n), row by row.
std::vector<double> ReferenceProduct(int64_t m, int64_t n, int64_t k, const std::function<double(int64_t, int64_t)>& a,
                                     const std::function<double(int64_t, int64_t)>& b);

}  // namespace muster
