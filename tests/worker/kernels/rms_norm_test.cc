// Root-mean-square norm and its gradients against f64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "tests/worker/kernels/kernel_test_support.h"

namespace muster {
namespace {

constexpr float kEps = 1e-6f;

// A norm's tensors, forward and backward.
struct RmsNorm {
  RmsNorm(DType type_in, int64_t rows_in, int64_t cols_in, int64_t gap = 0)
      : type(type_in),
        rows(rows_in),
        cols(cols_in),
        x(OwnedTensor::Random(type, rows, cols, 1, 2, cols + gap)),
        weight(OwnedTensor::Random(type, 1, cols, 2)),
        d_out(OwnedTensor::Random(type, rows, cols, 4, 1, cols + gap)),
        out(type, rows, cols, cols + gap),
        rstd(DType::kF32, 1, rows),
        d_x(OwnedTensor::Random(type, rows, cols, 5, 1, cols + gap)),
        d_weight(OwnedTensor::Random(DType::kF32, 1, cols, 6)),
        partials(DType::kF32, kernels::kColumnPartitions, cols) {}

  void Forward(KernelContext& context) {
    kernels::RmsNormForward(context, x.tensor(), weight.vector(), kEps, out.tensor(), rstd.vector());
  }
  void Backward(KernelContext& context, bool add_to_d_x, bool accumulate) {
    kernels::RmsNormBackward(context, d_out.tensor(), x.tensor(), weight.vector(), rstd.vector(), d_x.tensor(),
                             add_to_d_x, d_weight.vector(), accumulate, partials.tensor());
  }

  DType type;
  int64_t rows, cols;
  OwnedTensor x, weight, d_out, out, rstd, d_x, d_weight, partials;
};

struct Reference {
  std::vector<double> out, rstd, d_x, d_weight;
};

// With r = (mean(x^2) + eps)^(-1/2) and L = sum(d_out * x * r * w): dr/dx_c = -r^3 x_c / cols.
Reference Expected(const RmsNorm& norm, bool add_to_d_x, bool accumulate) {
  Reference expected;
  expected.d_weight = accumulate ? norm.d_weight.values() : std::vector<double>(static_cast<size_t>(norm.cols));
  const double count = static_cast<double>(norm.cols);
  for (int64_t row = 0; row < norm.rows; ++row) {
    double mean_square = 0, d_rstd = 0;
    for (int64_t c = 0; c < norm.cols; ++c) {
      mean_square += std::pow(norm.x.at(row, c), 2) / count;
      d_rstd += norm.d_out.at(row, c) * norm.weight.at(c) * norm.x.at(row, c);
    }
    const double rstd = 1 / std::sqrt(mean_square + static_cast<double>(kEps));
    for (int64_t c = 0; c < norm.cols; ++c) {
      expected.out.push_back(norm.x.at(row, c) * rstd * norm.weight.at(c));
      expected.d_weight[static_cast<size_t>(c)] += norm.d_out.at(row, c) * norm.x.at(row, c) * rstd;
      const double d_x =
          rstd * norm.d_out.at(row, c) * norm.weight.at(c) - d_rstd * std::pow(rstd, 3) * norm.x.at(row, c) / count;
      expected.d_x.push_back(add_to_d_x ? norm.d_x.at(row, c) + d_x : d_x);
    }
    expected.rstd.push_back(rstd);
  }
  return expected;
}

class RmsNormTest : public testing::TestWithParam<std::tuple<DType, int64_t>> {
 protected:
  TestContext context_;
};

TEST_P(RmsNormTest, AgreesWithTheReferenceForward) {
  const auto& [type, cols] = GetParam();
  for (const int64_t gap : {0, 5}) {
    RmsNorm norm(type, 41, cols, gap);
    const Reference expected = Expected(norm, false, false);
    norm.Forward(*context_);
    EXPECT_EQ(Difference(norm.rstd.values(), expected.rstd, 1e-6, 3e-6), "");
    EXPECT_EQ(Difference(norm.out.values(), expected.out, 1e-5, 1.01 * RoundingError(type)), "");
    EXPECT_TRUE(norm.out.gaps_untouched());
  }
}

TEST_P(RmsNormTest, AgreesWithTheReferenceBackward) {
  const auto& [type, cols] = GetParam();
  for (const bool add_to_d_x : {false, true}) {
    for (const bool accumulate : {false, true}) {
      RmsNorm norm(type, 41, cols, 3);
      const Reference expected = Expected(norm, add_to_d_x, accumulate);
      norm.Forward(*context_);
      norm.Backward(*context_, add_to_d_x, accumulate);
      // Of a single column the gradient is a difference of numbers that are as large as rstd.
      const double largest = cols == 1 ? *std::max_element(expected.rstd.begin(), expected.rstd.end()) : 1;
      EXPECT_EQ(Difference(norm.d_x.values(), expected.d_x, 2e-5 * largest, 1.01 * RoundingError(type)), "");
      EXPECT_EQ(Difference(norm.d_weight.values(), expected.d_weight, 1e-4, 1e-5), "");
      EXPECT_TRUE(norm.d_x.gaps_untouched());
    }
  }
}

TEST_P(RmsNormTest, TheGradientMayReplaceThatOfTheResult) {
  const auto& [type, cols] = GetParam();
  RmsNorm apart(type, 7, cols), together(type, 7, cols);
  apart.Forward(*context_);
  apart.Backward(*context_, false, false);
  together.Forward(*context_);
  together.d_x = together.d_out;
  together.Backward(*context_, false, false);
  EXPECT_EQ(together.d_out.memory(), apart.d_x.memory());
  EXPECT_EQ(together.d_weight.memory(), apart.d_weight.memory());
}

TEST_P(RmsNormTest, TwoThreadsGiveTheSameBits) {
  const auto& [type, cols] = GetParam();
  TestContext two(2);
  const int64_t rows = 40000 / cols + 1;
  RmsNorm a(type, rows, cols), b(type, rows, cols);
  a.Forward(*context_);
  a.Backward(*context_, true, true);
  b.Forward(*two);
  b.Backward(*two, true, true);
  EXPECT_EQ(a.out.memory(), b.out.memory());
  EXPECT_EQ(a.d_x.memory(), b.d_x.memory());
  EXPECT_EQ(a.d_weight.memory(), b.d_weight.memory());
}

TEST_P(RmsNormTest, ANanSpoilsItsRowAndNoOther) {
  const auto& [type, cols] = GetParam();
  RmsNorm norm(type, 5, cols);
  norm.x.set(2, cols - 1, std::nan(""));
  norm.x.set(3, 0, HUGE_VAL);
  norm.Forward(*context_);
  for (int64_t row = 0; row < 5; ++row) {
    EXPECT_EQ(std::isnan(norm.out.at(row, 0)), row == 2 || row == 3);  // infinity / infinity
  }
}

std::string NameOfCase(const testing::TestParamInfo<RmsNormTest::ParamType>& info) {
  return std::string(NameOf(std::get<0>(info.param))) + "_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Sizes, RmsNormTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                                          testing::Values(1, 31, 33, 100, 1000)),
                         NameOfCase);

}  // namespace
}  // namespace muster
