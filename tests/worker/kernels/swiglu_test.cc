// SwiGLU and its gradient against f64.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "tests/worker/kernels/kernel_test_support.h"

namespace muster {
namespace {

double ReferenceSilu(double x) { return x / (1 + std::exp(-x)); }

class SwiGluTest : public testing::TestWithParam<std::tuple<DType, int64_t>> {
 protected:
  DType type() const { return std::get<0>(GetParam()); }
  int64_t cols() const { return std::get<1>(GetParam()); }
  double rounding() const { return 1.01 * RoundingError(type()) + 1e-6; }
  OwnedTensor GateUp(int64_t rows, int64_t gap) const {
    return OwnedTensor::Random(type(), rows, 2 * cols(), 1, 3, 2 * cols() + gap);
  }

  static constexpr int64_t kRows = 37;
  TestContext context_;
};

TEST_P(SwiGluTest, AgreesWithTheReferenceForward) {
  for (const int64_t gap : {0, 7}) {
    const OwnedTensor gate_up = GateUp(kRows, gap);
    const OwnedTensor out(type(), kRows, cols(), cols() + gap);
    kernels::SwiGluForward(*context_, gate_up.tensor(), out.tensor());
    std::vector<double> expected;
    for (int64_t i = 0; i < kRows * cols(); ++i) {
      const int64_t row = i / cols(), c = i % cols();
      expected.push_back(ReferenceSilu(gate_up.at(row, c)) * gate_up.at(row, cols() + c));
    }
    EXPECT_EQ(Difference(out.values(), expected, 1e-6, rounding()), "");
    EXPECT_TRUE(out.gaps_untouched());
  }
}

TEST_P(SwiGluTest, AgreesWithTheReferenceBackward) {
  for (const int64_t gap : {0, 7}) {
    const OwnedTensor gate_up = GateUp(kRows, gap);
    const auto d_out = OwnedTensor::Random(type(), kRows, cols(), 2, 1, cols() + gap);
    const OwnedTensor d_gate_up(type(), kRows, 2 * cols(), 2 * cols() + gap);
    kernels::SwiGluBackward(*context_, d_out.tensor(), gate_up.tensor(), d_gate_up.tensor());
    std::vector<double> expected;
    for (int64_t i = 0; i < kRows * 2 * cols(); ++i) {
      const int64_t row = i / (2 * cols()), c = i % cols();
      const double gate = gate_up.at(row, c);
      const double slope = (ReferenceSilu(gate + 1e-5) - ReferenceSilu(gate - 1e-5)) / 2e-5;
      const bool is_gate = i % (2 * cols()) < cols();
      expected.push_back(d_out.at(row, c) * (is_gate ? gate_up.at(row, cols() + c) * slope : ReferenceSilu(gate)));
    }
    EXPECT_EQ(Difference(d_gate_up.values(), expected, 5e-6, rounding()), "");
    EXPECT_TRUE(d_gate_up.gaps_untouched());
  }
}

TEST_P(SwiGluTest, NanAndInfinityStayInTheirColumn) {
  OwnedTensor gate_up = GateUp(kRows, 0);
  const auto d_out = OwnedTensor::Random(type(), kRows, cols(), 2);
  gate_up.set(3, 0, std::nan(""));
  gate_up.set(4, cols(), HUGE_VAL);
  const OwnedTensor out(type(), kRows, cols()), d_gate_up(type(), kRows, 2 * cols());
  kernels::SwiGluForward(*context_, gate_up.tensor(), out.tensor());
  kernels::SwiGluBackward(*context_, d_out.tensor(), gate_up.tensor(), d_gate_up.tensor());
  for (int64_t i = 0; i < kRows * cols(); ++i) {
    const bool first = i % cols() == 0;
    EXPECT_EQ(std::isnan(out.at(i)), first && i / cols() == 3);
    EXPECT_EQ(std::isinf(out.at(i)), first && i / cols() == 4);
    EXPECT_EQ(std::isfinite(d_gate_up.at(i / cols(), i % cols())), !(first && (i / cols() == 3 || i / cols() == 4)));
  }
}

TEST_P(SwiGluTest, TwoThreadsGiveTheSameBits) {
  const int64_t rows = 40000 / cols() + 1;  // enough to be shared out
  const OwnedTensor gate_up = GateUp(rows, 0);
  const auto d_out = OwnedTensor::Random(type(), rows, cols(), 2);
  TestContext two(2);
  const OwnedTensor out1(type(), rows, cols()), out2(type(), rows, cols());
  const OwnedTensor d1(type(), rows, 2 * cols()), d2(type(), rows, 2 * cols());
  kernels::SwiGluForward(*context_, gate_up.tensor(), out1.tensor());
  kernels::SwiGluForward(*two, gate_up.tensor(), out2.tensor());
  kernels::SwiGluBackward(*context_, d_out.tensor(), gate_up.tensor(), d1.tensor());
  kernels::SwiGluBackward(*two, d_out.tensor(), gate_up.tensor(), d2.tensor());
  EXPECT_EQ(out1.memory(), out2.memory());
  EXPECT_EQ(d1.memory(), d2.memory());
}

TEST(SwiGluRangeTest, AnF16ProductThatIsTooLargeIsInfinite) {
  const auto gate_up = OwnedTensor::Of(DType::kF16, 1, 2, {300, 300});
  const OwnedTensor out(DType::kF16, 1, 1);
  TestContext context;
  kernels::SwiGluForward(*context, gate_up.tensor(), out.tensor());
  EXPECT_EQ(out.at(0), HUGE_VAL);
}

std::string NameOfCase(const testing::TestParamInfo<SwiGluTest::ParamType>& info) {
  return std::string(NameOf(std::get<0>(info.param))) + "_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Sizes, SwiGluTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                                          testing::Values(1, 31, 33, 100, 1000)),
                         NameOfCase);

}  // namespace
}  // namespace muster
