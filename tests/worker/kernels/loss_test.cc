// Cross entropy and sums to the host, against f64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "tests/worker/kernels/kernel_test_support.h"

namespace muster {
namespace {

constexpr int64_t kRows = 29;

class CrossEntropyTest : public testing::TestWithParam<std::tuple<DType, int64_t>> {
 protected:
  CrossEntropyTest()
      : type_(std::get<0>(GetParam())),
        vocab_(std::get<1>(GetParam())),
        logits_(OwnedTensor::Random(type_, kRows, vocab_, 1, 4, vocab_ + 3)),
        targets_(DType::kI32, 1, kRows),
        stats_(DType::kF32, kRows, kCrossEntropyStatistics),
        losses_(DType::kF32, 1, kRows),
        lse_(DType::kF32, 1, kRows) {
    for (int64_t row = 0; row < kRows; ++row) {
      targets_.set(0, row, row % 7 == 3 ? kernels::kIgnoredTarget : static_cast<double>(row * 131 % vocab_));
    }
  }

  void Forward() {
    kernels::CrossEntropyStatistics(*context_, logits_.tensor(), targets_.vector(), {0, vocab_}, stats_.tensor());
    kernels::CrossEntropyFromStatistics(*context_, stats_.tensor(), targets_.vector(), vocab_, losses_.vector(),
                                        lse_.vector());
  }
  void Backward(float scale) {
    kernels::CrossEntropyBackward(*context_, logits_.tensor(), targets_.vector(), {0, vocab_}, lse_.vector(), scale);
  }
  double ExpectedLse(int64_t row) const {
    double total = 0;
    for (int64_t c = 0; c < vocab_; ++c) total += std::exp(logits_.at(row, c));
    return std::log(total);
  }

  const DType type_;
  const int64_t vocab_;
  TestContext context_;
  OwnedTensor logits_, targets_, stats_, losses_, lse_;
};

TEST_P(CrossEntropyTest, LossesAgreeWithTheReferenceAndIgnoredTargetsCountNothing) {
  std::vector<double> lse, losses;
  for (int64_t row = 0; row < kRows; ++row) {
    lse.push_back(ExpectedLse(row));
    const int64_t target = static_cast<int64_t>(targets_.at(row));
    losses.push_back(target == kernels::kIgnoredTarget ? 0 : lse.back() - logits_.at(row, target));
  }
  Forward();
  EXPECT_EQ(Difference(lse_.values(), lse, 2e-6, 1e-6), "");
  EXPECT_EQ(Difference(losses_.values(), losses, 4e-6, 1e-6), "");
}

TEST_P(CrossEntropyTest, GradientsAgreeWithTheReferenceAndIgnoredRowsAreZero) {
  const float scale = 0.37f;
  std::vector<double> expected;
  for (int64_t row = 0; row < kRows; ++row) {
    const double lse = ExpectedLse(row);
    const int64_t target = static_cast<int64_t>(targets_.at(row));
    for (int64_t c = 0; c < vocab_; ++c) {
      const double gradient = std::exp(logits_.at(row, c) - lse) - (c == target ? 1 : 0);
      expected.push_back(target == kernels::kIgnoredTarget ? 0 : static_cast<double>(scale) * gradient);
    }
  }
  Forward();
  Backward(scale);
  EXPECT_EQ(Difference(logits_.values(), expected, 1e-6, 1.01 * RoundingError(type_) + 4e-6), "");
  EXPECT_TRUE(logits_.gaps_untouched());
}

TEST_P(CrossEntropyTest, LargeLogitsDoNotOverflow) {
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t c = 0; c < vocab_; ++c) logits_.set(row, c, 10000 + logits_.at(row, c));
  }
  const double top_lse = 10000 + std::log(static_cast<double>(vocab_)) + 100;
  Forward();
  for (int64_t row = 0; row < kRows; ++row) {
    EXPECT_TRUE(std::isfinite(losses_.at(row)));
    EXPECT_GT(lse_.at(row), 9900);
    EXPECT_LT(lse_.at(row), top_lse);
  }
}

TEST_P(CrossEntropyTest, NanAndInfinityReachTheLossOfTheirRowOnly) {
  logits_.set(1, vocab_ / 2, std::nan(""));
  logits_.set(2, vocab_ - 1, HUGE_VAL);
  Forward();
  for (int64_t row = 0; row < kRows; ++row) EXPECT_EQ(std::isfinite(losses_.at(row)), row != 1 && row != 2) << row;
}

TEST_P(CrossEntropyTest, ATargetOutsideTheVocabularyIsNanAndReadsNothing) {
  targets_.set(0, 0, static_cast<double>(vocab_));
  targets_.set(0, 1, -2);
  Forward();
  EXPECT_TRUE(std::isnan(losses_.at(0)));
  EXPECT_TRUE(std::isnan(losses_.at(1)));
  EXPECT_TRUE(std::isfinite(losses_.at(2)));
}

// Three ranks with equal runs of columns, of which the last may have no class at all.
TEST_P(CrossEntropyTest, PartsOfTheVocabularyGiveTheLossesAndGradientsOfTheWhole) {
  constexpr int64_t kParts = 3;
  const int64_t columns = vocab_ / 2 + 1;
  const OwnedTensor stats(DType::kF32, kParts * kRows, kCrossEntropyStatistics);
  std::vector<OwnedTensor> parts;
  std::vector<kernels::ClassRange> ranges;
  for (int64_t part = 0; part < kParts; ++part) {
    const int64_t first = part * columns;
    ranges.push_back({first, std::clamp<int64_t>(vocab_ - first, 0, columns)});
    parts.push_back(
        OwnedTensor::Random(type_, kRows, columns, 2, 100, columns + 3));  // what padding holds is no matter
    for (int64_t i = 0; i < kRows * ranges.back().count; ++i) {
      const int64_t row = i / ranges.back().count, c = i % ranges.back().count;
      parts.back().set(row, c, logits_.at(row, first + c));
    }
    const Tensor own(stats.tensor().as<float>() + part * kRows * kCrossEntropyStatistics, DType::kF32,
                     {kRows, kCrossEntropyStatistics});
    kernels::CrossEntropyStatistics(*context_, parts.back().tensor(), targets_.vector(), ranges.back(), own);
  }
  const OwnedTensor losses(DType::kF32, 1, kRows), lse(DType::kF32, 1, kRows);
  kernels::CrossEntropyFromStatistics(*context_, stats.tensor(), targets_.vector(), vocab_, losses.vector(),
                                      lse.vector());
  Forward();
  Backward(0.5f);
  EXPECT_EQ(Difference(losses.values(), losses_.values(), 4e-6, 1e-6), "");
  EXPECT_EQ(Difference(lse.values(), lse_.values(), 2e-6, 1e-6), "");
  for (int64_t part = 0; part < kParts; ++part) {
    const OwnedTensor& own = parts[static_cast<size_t>(part)];
    const kernels::ClassRange& range = ranges[static_cast<size_t>(part)];
    kernels::CrossEntropyBackward(*context_, own.tensor(), targets_.vector(), range, lse.vector(), 0.5f);
    std::vector<double> expected;
    for (int64_t i = 0; i < kRows * columns; ++i) {
      const int64_t c = i % columns;
      expected.push_back(c < range.count ? logits_.at(i / columns, range.first + c) : 0);
    }
    EXPECT_EQ(Difference(own.values(), expected, 1e-6, 2.02 * RoundingError(type_) + 4e-6), "") << part;
    EXPECT_TRUE(own.gaps_untouched());
  }
}

TEST_P(CrossEntropyTest, TwoThreadsGiveTheSameBits) {
  const int64_t rows = 40000 / vocab_ + 1;  // enough to be shared out
  const auto logits = OwnedTensor::Random(type_, rows, vocab_, 3, 4);
  const OwnedTensor targets(DType::kI32, 1, rows);
  TestContext two(2);
  std::vector<std::vector<uint8_t>> results;
  for (TestContext* context : {&context_, &two}) {
    const OwnedTensor stats(DType::kF32, rows, kCrossEntropyStatistics);
    const OwnedTensor losses(DType::kF32, 1, rows), lse(DType::kF32, 1, rows);
    const OwnedTensor gradients = logits.Copy();
    kernels::CrossEntropyStatistics(**context, logits.tensor(), targets.vector(), {0, vocab_}, stats.tensor());
    kernels::CrossEntropyFromStatistics(**context, stats.tensor(), targets.vector(), vocab_, losses.vector(),
                                        lse.vector());
    kernels::CrossEntropyBackward(**context, gradients.tensor(), targets.vector(), {0, vocab_}, lse.vector(), 1);
    results.push_back(losses.memory());
    results.push_back(gradients.memory());
  }
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(results[1], results[3]);
}

std::string NameOfCase(const testing::TestParamInfo<CrossEntropyTest::ParamType>& info) {
  return std::string(NameOf(std::get<0>(info.param))) + "_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Sizes, CrossEntropyTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                                          testing::Values(1, 31, 33, 100, 1000)),
                         NameOfCase);

class SumTest : public testing::TestWithParam<int64_t> {
 protected:
  TestContext context_;
};

TEST_P(SumTest, AgreesWithTheReference) {
  const auto values = OwnedTensor::Random(DType::kF32, 1, GetParam(), 3);
  double sum = 0, squares = 0;
  for (const double value : values.values()) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(kernels::SumToHost(*context_, values.vector()), sum, 1e-6 * static_cast<double>(GetParam()));
  EXPECT_NEAR(kernels::SumOfSquaresToHost(*context_, values.vector()), squares, 1e-6 * squares);
}

TEST_P(SumTest, IsTheSumOfItsBlocksOneByOne) {
  const auto values = OwnedTensor::Random(DType::kF32, 1, GetParam(), 4);
  double blocks = 0;
  for (int64_t first = 0; first < GetParam(); first += kernels::kSumBlock) {
    const Tensor block(values.tensor().as<float>() + first, DType::kF32,
                       {std::min(kernels::kSumBlock, GetParam() - first)});
    blocks += kernels::SumOfSquaresToHost(*context_, block);
  }
  EXPECT_EQ(kernels::SumOfSquaresToHost(*context_, values.vector()), blocks);
}

TEST_P(SumTest, TwoThreadsGiveTheSameBits) {
  const auto values = OwnedTensor::Random(DType::kF32, 1, GetParam(), 5);
  TestContext two(2);
  EXPECT_EQ(kernels::SumToHost(*context_, values.vector()), kernels::SumToHost(*two, values.vector()));
}

TEST_P(SumTest, PropagatesNanAndInfinity) {
  auto values = OwnedTensor::Random(DType::kF32, 1, GetParam(), 6);
  values.set(0, GetParam() - 1, -HUGE_VAL);
  EXPECT_EQ(kernels::SumOfSquaresToHost(*context_, values.vector()), HUGE_VAL);
  EXPECT_EQ(kernels::SumToHost(*context_, values.vector()), -HUGE_VAL);
  values.set(0, 0, std::nan(""));
  EXPECT_TRUE(std::isnan(kernels::SumOfSquaresToHost(*context_, values.vector())));
  EXPECT_TRUE(std::isnan(kernels::SumToHost(*context_, values.vector())));
}

// What a rank sums of a gradient that is split over ranks: runs of rows, with other elements before and after.
TEST_P(SumTest, ARangeIsSummedAsIfItStoodAlone) {
  auto values = OwnedTensor::Random(DType::kF32, 1, GetParam() + 100, 7);
  const OwnedTensor alone(DType::kF32, 1, GetParam());
  const Tensor range(values.tensor().as<float>() + 50, DType::kF32, {GetParam()});
  kernels::Copy(*context_, range, alone.vector());
  const double squares = kernels::SumOfSquaresToHost(*context_, range);
  EXPECT_EQ(squares, kernels::SumOfSquaresToHost(*context_, alone.vector()));
  for (const double foreign : {std::nan(""), HUGE_VAL}) {
    values.set(0, 49, foreign);
    values.set(0, 50 + GetParam(), foreign);
    EXPECT_EQ(squares, kernels::SumOfSquaresToHost(*context_, range)) << "an element of another range was added";
  }
  for (const int64_t at : {int64_t{0}, GetParam() / 2, GetParam() - 1}) {
    for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
      const double before = values.at(50 + at);
      values.set(0, 50 + at, bad);
      EXPECT_FALSE(std::isfinite(kernels::SumOfSquaresToHost(*context_, range))) << bad << " at " << at;
      values.set(0, 50 + at, before);
    }
  }
}

// The last is more than one round of kReductionBlocks blocks.
INSTANTIATE_TEST_SUITE_P(Sizes, SumTest, testing::Values(1, 31, 33, 4096, 4097, 100000, 5000000));

}  // namespace
}  // namespace muster
