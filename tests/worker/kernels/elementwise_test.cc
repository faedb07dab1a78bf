// Add, GELU, Cast, Zero and the column sums, against f64.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>
#include <utility>

#include "tests/worker/kernels/kernel_test_support.h"

namespace muster {
namespace {

class ElementwiseTest : public testing::TestWithParam<std::tuple<DType, int64_t>> {
 protected:
  DType type() const { return std::get<0>(GetParam()); }
  int64_t cols() const { return std::get<1>(GetParam()); }
  double rounding() const { return 1.01 * RoundingError(type()); }
  static constexpr int64_t kRows = 37;

  TestContext context_;
};

TEST_P(ElementwiseTest, AddsDenseAndStridedTensors) {
  for (const int64_t gap : {0, 7}) {
    const auto x = OwnedTensor::Random(type(), kRows, cols(), 1, 1, cols() + gap);
    const auto residual = OwnedTensor::Random(type(), kRows, cols(), 2);
    const OwnedTensor out(type(), kRows, cols(), cols() + gap);
    std::vector<double> expected = x.values();
    for (int64_t i = 0; i < kRows * cols(); ++i) expected[static_cast<size_t>(i)] += residual.at(i);
    kernels::Add(*context_, x.tensor(), residual.tensor(), out.tensor());
    EXPECT_EQ(Difference(out.values(), expected, 1e-12, rounding()), "");
    EXPECT_TRUE(out.gaps_untouched());
  }
}

TEST_P(ElementwiseTest, AddsInPlace) {
  const auto x = OwnedTensor::Random(type(), kRows, cols(), 1);
  const auto residual = OwnedTensor::Random(type(), kRows, cols(), 2);
  const OwnedTensor out(type(), kRows, cols());
  kernels::Add(*context_, x.tensor(), residual.tensor(), out.tensor());
  const OwnedTensor onto_x = x.Copy();
  kernels::Add(*context_, onto_x.tensor(), residual.tensor(), onto_x.tensor());
  EXPECT_EQ(onto_x.memory(), out.memory());
  const OwnedTensor onto_residual = residual.Copy();
  kernels::Add(*context_, x.tensor(), onto_residual.tensor(), onto_residual.tensor());
  EXPECT_EQ(onto_residual.memory(), out.memory());
}

TEST_P(ElementwiseTest, AddsABiasToEveryRowAndRoundsOnce) {
  for (const int64_t gap : {0, 7}) {
    const auto x = OwnedTensor::Random(type(), kRows, cols(), 1, 1, cols() + gap);
    const auto residual = OwnedTensor::Random(type(), kRows, cols(), 2);
    const auto bias = OwnedTensor::Random(type(), 1, cols(), 3);
    OwnedTensor expected(type(), kRows, cols(), cols() + gap);
    for (int64_t i = 0; i < kRows * cols(); ++i) {
      const float sum =
          static_cast<float>(x.at(i)) + static_cast<float>(bias.at(i % cols())) + static_cast<float>(residual.at(i));
      expected.set(i / cols(), i % cols(), static_cast<double>(sum));
    }
    kernels::Add(*context_, x.tensor(), residual.tensor(), x.tensor(), bias.vector());
    EXPECT_EQ(x.memory(), expected.memory());
  }
}

TEST_P(ElementwiseTest, CopiesRowsBetweenTensorsWithAndWithoutGaps) {
  const std::pair<int64_t, int64_t> gaps[] = {{0, 0}, {3, 0}, {0, 5}, {2, 4}};
  for (const auto& [from_gap, to_gap] : gaps) {
    const auto from = OwnedTensor::Random(type(), kRows, cols(), 1, 1, cols() + from_gap);
    const OwnedTensor to(type(), kRows, cols(), cols() + to_gap);
    kernels::Copy(*context_, from.tensor(), to.tensor());
    EXPECT_EQ(to.values(), from.values());
    EXPECT_TRUE(to.gaps_untouched());
  }
}

double ReferenceGelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

TEST_P(ElementwiseTest, GeluAgreesWithTheReference) {
  const auto x = OwnedTensor::Random(type(), kRows, cols(), 3, 3);
  const OwnedTensor out(type(), kRows, cols());
  kernels::GeluForward(*context_, x.tensor(), out.tensor());
  std::vector<double> expected;
  for (const double value : x.values()) expected.push_back(ReferenceGelu(value));
  EXPECT_EQ(Difference(out.values(), expected, 1e-6, rounding() + 1e-6), "");
}

TEST_P(ElementwiseTest, GeluBackwardAgreesWithTheReferenceAndWorksInPlace) {
  const auto x = OwnedTensor::Random(type(), kRows, cols(), 3, 3);
  const auto d_out = OwnedTensor::Random(type(), kRows, cols(), 4);
  const OwnedTensor d_x(type(), kRows, cols());
  kernels::GeluBackward(*context_, d_out.tensor(), x.tensor(), d_x.tensor());
  std::vector<double> expected;
  for (int64_t i = 0; i < kRows * cols(); ++i) {
    const double slope = (ReferenceGelu(x.at(i) + 1e-5) - ReferenceGelu(x.at(i) - 1e-5)) / 2e-5;
    expected.push_back(d_out.at(i) * slope);
  }
  EXPECT_EQ(Difference(d_x.values(), expected, 4e-6, rounding() + 1e-6), "");
  const OwnedTensor in_place = d_out.Copy();
  kernels::GeluBackward(*context_, in_place.tensor(), x.tensor(), in_place.tensor());
  EXPECT_EQ(in_place.memory(), d_x.memory());
}

TEST_P(ElementwiseTest, CastsToAndFromEveryFloatingType) {
  for (const DType other : {DType::kF32, DType::kBF16, DType::kF16}) {
    const auto from = OwnedTensor::Random(type(), kRows, cols(), 5, 1, cols() + 3);
    const OwnedTensor to(other, kRows, cols());
    kernels::Cast(*context_, from.tensor(), to.tensor());
    OwnedTensor expected(other, kRows, cols());
    for (int64_t i = 0; i < kRows * cols(); ++i) expected.set(i / cols(), i % cols(), from.at(i));
    EXPECT_EQ(to.memory(), expected.memory()) << NameOf(other);
  }
}

TEST_P(ElementwiseTest, ZeroClearsEveryByte) {
  const auto x = OwnedTensor::Random(type(), kRows, cols(), 6);
  kernels::Zero(*context_, x.tensor());
  EXPECT_EQ(x.memory(), OwnedTensor(type(), kRows, cols()).memory());
}

TEST_P(ElementwiseTest, NanAndInfinityStayWhereTheyAre) {
  auto x = OwnedTensor::Random(type(), kRows, cols(), 7);
  const auto zero = OwnedTensor(type(), kRows, cols());
  x.set(3, 0, std::nan(""));
  x.set(4, 0, HUGE_VAL);
  const OwnedTensor sum(type(), kRows, cols()), gelu(type(), kRows, cols());
  kernels::Add(*context_, x.tensor(), zero.tensor(), sum.tensor());
  kernels::GeluForward(*context_, x.tensor(), gelu.tensor());
  for (const OwnedTensor* out : {&sum, &gelu}) {
    for (int64_t row = 0; row < kRows; ++row) {
      EXPECT_EQ(std::isnan(out->at(row, 0)), row == 3);
      EXPECT_EQ(std::isinf(out->at(row, 0)), row == 4);
    }
  }
}

TEST_P(ElementwiseTest, BiasGradientSumsColumnsWithAndWithoutAccumulation) {
  for (const int64_t rows : {1, 5, 16, 1000}) {
    const auto d_out = OwnedTensor::Random(type(), rows, cols(), 8, 1, cols() + 2);
    const auto before = OwnedTensor::Random(DType::kF32, 1, cols(), 9);
    const OwnedTensor partials(DType::kF32, kernels::kColumnPartitions, cols());
    for (const bool accumulate : {false, true}) {
      const OwnedTensor d_bias = before.Copy();
      kernels::BiasGradient(*context_, d_out.tensor(), d_bias.vector(), accumulate, partials.tensor());
      std::vector<double> expected(static_cast<size_t>(cols()));
      for (int64_t col = 0; col < cols(); ++col) {
        if (accumulate) expected[static_cast<size_t>(col)] = before.at(col);
        for (int64_t row = 0; row < rows; ++row) expected[static_cast<size_t>(col)] += d_out.at(row, col);
      }
      EXPECT_EQ(Difference(d_bias.values(), expected, 1e-4, 1e-6), "") << rows << " rows, accumulate " << accumulate;
    }
  }
}

TEST_P(ElementwiseTest, SumInOrderAddsPartsFromTheFirstToTheLastAndRoundsOnce) {
  constexpr int64_t kParts = 5;
  const auto parts = OwnedTensor::Random(type(), kParts, cols(), 10, 1e4, cols() + 3);
  const OwnedTensor out(type(), 1, cols());
  kernels::SumInOrder(*context_, parts.tensor(), out.vector());
  OwnedTensor expected(type(), 1, cols());
  for (int64_t col = 0; col < cols(); ++col) {
    float sum = static_cast<float>(parts.at(0, col));
    for (int64_t part = 1; part < kParts; ++part) sum += static_cast<float>(parts.at(part, col));
    expected.set(0, col, static_cast<double>(sum));
  }
  EXPECT_EQ(out.memory(), expected.memory());
  for (int64_t onto = 0; onto < kParts; ++onto) {
    const OwnedTensor copy = parts.Copy();
    const Tensor part(copy.tensor().as<char>() + onto * copy.tensor().row_stride * SizeOf(type()), type(), {cols()});
    kernels::SumInOrder(*context_, copy.tensor(), part);
    for (int64_t col = 0; col < cols(); ++col) ASSERT_EQ(copy.at(onto, col), expected.at(col)) << onto;
    EXPECT_TRUE(copy.gaps_untouched());
  }
}

TEST_P(ElementwiseTest, SumInOrderOfF16OverflowsToInfinityOnlyAtTheEnd) {
  const auto parts = OwnedTensor::Of(DType::kF16, 3, 2, {60000, 60000, 60000, 60000, -60000, 0});
  const OwnedTensor out(DType::kF16, 1, 2);
  kernels::SumInOrder(*context_, parts.tensor(), out.vector());
  EXPECT_EQ(out.at(0), 60000);
  EXPECT_EQ(out.at(1), HUGE_VAL);
}

TEST_P(ElementwiseTest, TwoThreadsGiveTheSameBits) {
  const int64_t rows = 40000 / cols() + 1;  // enough to be shared out
  TestContext two(2);
  const auto x = OwnedTensor::Random(type(), rows, cols(), 11);
  const OwnedTensor out1(type(), rows, cols()), out2(type(), rows, cols());
  kernels::GeluForward(*context_, x.tensor(), out1.tensor());
  kernels::GeluForward(*two, x.tensor(), out2.tensor());
  EXPECT_EQ(out1.memory(), out2.memory());
  const OwnedTensor partials(DType::kF32, kernels::kColumnPartitions, cols());
  const OwnedTensor sum1(DType::kF32, 1, cols()), sum2(DType::kF32, 1, cols());
  kernels::BiasGradient(*context_, x.tensor(), sum1.vector(), false, partials.tensor());
  kernels::BiasGradient(*two, x.tensor(), sum2.vector(), false, partials.tensor());
  EXPECT_EQ(sum1.memory(), sum2.memory());
}

std::string NameOfCase(const testing::TestParamInfo<ElementwiseTest::ParamType>& info) {
  return std::string(NameOf(std::get<0>(info.param))) + "_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Sizes, ElementwiseTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                                          testing::Values(1, 31, 33, 100, 1000)),
                         NameOfCase);

}  // namespace
}  // namespace muster
