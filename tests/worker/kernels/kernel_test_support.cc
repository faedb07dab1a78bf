#include "tests/worker/kernels/kernel_test_support.h"

#include <cmath>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "worker/kernels/formulas.h"
#include "worker/tensor/cpu_device.h"

namespace muster {
namespace {

constexpr uint8_t kGapByte = 0xa5;

}  // namespace

OwnedTensor::OwnedTensor(DType dtype, int64_t rows, int64_t cols, int64_t row_stride)
    : tensor_(nullptr, dtype, {rows, cols}) {
  if (row_stride != 0) tensor_.row_stride = row_stride;
  const int64_t bytes = rows * tensor_.row_stride * SizeOf(dtype);
  bytes_ = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(bytes), kGapByte);
  tensor_.data = bytes_->data();
  for (int64_t row = 0; row < rows; ++row) {
    std::memset(bytes_->data() + row * tensor_.row_stride * SizeOf(dtype), 0,
                static_cast<size_t>(cols * SizeOf(dtype)));
  }
}

OwnedTensor OwnedTensor::Random(DType dtype, int64_t rows, int64_t cols, uint64_t seed, double scale,
                                int64_t row_stride) {
  std::mt19937_64 bits(seed);
  std::normal_distribution<double> normal(0, scale);
  OwnedTensor made(dtype, rows, cols, row_stride);
  for (int64_t i = 0; i < rows * cols; ++i) made.set(i / cols, i % cols, normal(bits));
  return made;
}

OwnedTensor OwnedTensor::Of(DType dtype, int64_t rows, int64_t cols, const std::vector<double>& values,
                            int64_t row_stride) {
  MUSTER_CHECK(static_cast<int64_t>(values.size()) == rows * cols);
  OwnedTensor made(dtype, rows, cols, row_stride);
  for (int64_t i = 0; i < rows * cols; ++i) made.set(i / cols, i % cols, values[static_cast<size_t>(i)]);
  return made;
}

Tensor OwnedTensor::vector() const { return Tensor(tensor_.data, tensor_.dtype, {tensor_.elements()}); }

double OwnedTensor::at(int64_t row, int64_t col) const {
  const int64_t i = row * tensor_.row_stride + col;
  switch (tensor_.dtype) {
    case DType::kF32:
      return static_cast<double>(tensor_.as<float>()[i]);
    case DType::kBF16:
      return static_cast<double>(kernels::ToFloat(tensor_.as<kernels::BF16>()[i]));
    case DType::kF16:
      return static_cast<double>(kernels::ToFloat(tensor_.as<kernels::F16>()[i]));
    case DType::kI32:
      return tensor_.as<int32_t>()[i];
    case DType::kU8:
      return tensor_.as<uint8_t>()[i];
  }
  return 0;
}

void OwnedTensor::set(int64_t row, int64_t col, double value) {
  const int64_t i = row * tensor_.row_stride + col;
  switch (tensor_.dtype) {
    case DType::kF32:
      tensor_.as<float>()[i] = static_cast<float>(value);
      break;
    case DType::kBF16:
      tensor_.as<kernels::BF16>()[i] = kernels::FromFloat(static_cast<float>(value), kernels::BF16{});
      break;
    case DType::kF16:
      tensor_.as<kernels::F16>()[i] = kernels::FromFloat(static_cast<float>(value), kernels::F16{});
      break;
    case DType::kI32:
      tensor_.as<int32_t>()[i] = static_cast<int32_t>(value);
      break;
    case DType::kU8:
      tensor_.as<uint8_t>()[i] = static_cast<uint8_t>(value);
      break;
  }
}

std::vector<double> OwnedTensor::values() const {
  std::vector<double> all;
  for (int64_t i = 0; i < tensor_.elements(); ++i) all.push_back(at(i));
  return all;
}

std::vector<uint8_t> OwnedTensor::memory() const { return *bytes_; }

bool OwnedTensor::gaps_untouched() const {
  const int64_t size = SizeOf(tensor_.dtype);
  for (int64_t row = 0; row < tensor_.rows(); ++row) {
    for (int64_t byte = tensor_.cols() * size; byte < tensor_.row_stride * size; ++byte) {
      if ((*bytes_)[static_cast<size_t>(row * tensor_.row_stride * size + byte)] != kGapByte) return false;
    }
  }
  return true;
}

OwnedTensor OwnedTensor::Copy() const {
  OwnedTensor copy = *this;
  copy.bytes_ = std::make_shared<std::vector<uint8_t>>(*bytes_);
  copy.tensor_.data = copy.bytes_->data();
  return copy;
}

TestContext::TestContext(int threads)
    : device_(MakeCpuDevice()), workspace_(DType::kU8, 1, KernelWorkspaceBytes(threads)) {
  KernelOptions options;
  options.threads = threads;
  context_ = KernelContext::Create(*device_, options, workspace_.vector()).value();
}

double RoundingError(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return std::ldexp(1.0, -8);
    case DType::kF16:
      return std::ldexp(1.0, -11);
    default:
      return std::ldexp(1.0, -24);
  }
}

const char* NameOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kBF16:
      return "bf16";
    case DType::kF16:
      return "f16";
    case DType::kI32:
      return "i32";
    case DType::kU8:
      return "u8";
  }
  return "";
}

std::string Difference(const std::vector<double>& actual, const std::vector<double>& expected, double absolute,
                       double relative) {
  if (actual.size() != expected.size()) return absl::StrCat(actual.size(), " values, expected ", expected.size());
  std::string worst;
  double worst_excess = 1;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double a = actual[i];
    const double e = expected[i];
    if (std::isnan(a) && std::isnan(e)) continue;
    if (a == e) continue;
    const double excess = std::fabs(a - e) / (absolute + relative * std::fabs(e));
    if (std::isfinite(excess) && excess <= worst_excess) continue;
    worst_excess = std::isfinite(excess) ? excess : HUGE_VAL;
    worst = absl::StrCat("value ", i, " of ", actual.size(), " is ", a, ", expected ", e, ", ", excess,
                         " times the tolerance");
  }
  return worst;
}

std::vector<double> ReferenceProduct(int64_t m, int64_t n, int64_t k, const std::function<double(int64_t, int64_t)>& a,
                                     const std::function<double(int64_t, int64_t)>& b) {
  std::vector<double> a_values, b_values, product(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m * k; ++i) a_values.push_back(a(i / k, i % k));
  for (int64_t i = 0; i < k * n; ++i) b_values.push_back(b(i / n, i % n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < k; ++j) {
      const double factor = a_values[static_cast<size_t>(i * k + j)];
      for (int64_t c = 0; c < n; ++c) {
        product[static_cast<size_t>(i * n + c)] += factor * b_values[static_cast<size_t>(j * n + c)];
      }
    }
  }
  return product;
}

}  // namespace muster
