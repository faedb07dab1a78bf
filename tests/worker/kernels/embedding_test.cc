// Embedding lookup and its gradients, against f64.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "tests/worker/kernels/kernel_test_support.h"

namespace muster {
namespace {

constexpr int64_t kVocab = 11, kContext = 9, kSequence = 7, kBatch = 3, kRows = kBatch * kSequence;
constexpr kernels::EmbeddingShape kShape{kSequence, kVocab};

class EmbeddingTest : public testing::TestWithParam<std::tuple<DType, int64_t>> {
 protected:
  EmbeddingTest()
      : type_(std::get<0>(GetParam())),
        hidden_(std::get<1>(GetParam())),
        tokens_(DType::kI32, 1, kRows),
        token_weight_(OwnedTensor::Random(type_, kVocab, hidden_, 1)),
        position_weight_(OwnedTensor::Random(type_, kContext, hidden_, 2)),
        out_(type_, kRows, hidden_),
        d_out_(OwnedTensor::Random(type_, kRows, hidden_, 3)),
        d_token_(OwnedTensor::Random(DType::kF32, kVocab, hidden_, 4)),
        d_position_(OwnedTensor::Random(DType::kF32, kContext, hidden_, 5)) {
    for (int64_t row = 0; row < kRows; ++row) tokens_.set(0, row, static_cast<double>(row * row % kVocab));
  }

  void Forward() {
    kernels::EmbeddingForward(*context_, kShape, tokens_.vector(), token_weight_.tensor(), position_weight_.tensor(),
                              out_.tensor());
  }
  void Backward(KernelContext& context, bool accumulate) {
    kernels::EmbeddingBackward(context, kShape, tokens_.vector(), d_out_.tensor(), d_token_.tensor(),
                               d_position_.tensor(), accumulate);
  }
  int64_t token(int64_t row) const { return static_cast<int64_t>(tokens_.at(row)); }

  const DType type_;
  const int64_t hidden_;
  TestContext context_;
  OwnedTensor tokens_, token_weight_, position_weight_, out_, d_out_, d_token_, d_position_;
};

TEST_P(EmbeddingTest, LooksUpTokenAndPosition) {
  Forward();
  std::vector<double> expected;
  for (int64_t i = 0; i < kRows * hidden_; ++i) {
    const int64_t row = i / hidden_;
    expected.push_back(token_weight_.at(token(row), i % hidden_) + position_weight_.at(row % kSequence, i % hidden_));
  }
  EXPECT_EQ(Difference(out_.values(), expected, 1e-12, 1.01 * RoundingError(type_)), "");
}

TEST_P(EmbeddingTest, GradientsAgreeWithTheReference) {
  for (const bool accumulate : {false, true}) {
    std::vector<double> d_token = d_token_.values();
    std::vector<double> d_position = d_position_.values();
    if (!accumulate) {
      d_token.assign(d_token.size(), 0);
      d_position.assign(d_position.size(), 0);
    }
    for (int64_t i = 0; i < kRows * hidden_; ++i) {
      const int64_t row = i / hidden_;
      d_token[static_cast<size_t>(token(row) * hidden_ + i % hidden_)] += d_out_.at(i);
      d_position[static_cast<size_t>(row % kSequence * hidden_ + i % hidden_)] += d_out_.at(i);
    }
    Backward(*context_, accumulate);
    EXPECT_EQ(Difference(d_token_.values(), d_token, 2e-6, 1e-6), "");
    EXPECT_EQ(Difference(d_position_.values(), d_position, 2e-6, 1e-6), "");
  }
}

TEST_P(EmbeddingTest, AddsTheRowsOfATokenInTheOrderOfTheBatch) {
  for (int64_t row = 0; row < kRows; ++row) tokens_.set(0, row, 4);
  Backward(*context_, false);
  for (int64_t c = 0; c < hidden_; ++c) {
    float expected = 0;
    for (int64_t row = 0; row < kRows; ++row) expected += static_cast<float>(d_out_.at(row, c));
    ASSERT_EQ(d_token_.at(4, c), static_cast<double>(expected));
  }
}

TEST_P(EmbeddingTest, ATokenOutsideTheVocabularyGivesNanAndTouchesNothing) {
  tokens_.set(0, 2, kVocab);
  tokens_.set(0, 5, -1);
  Forward();
  for (int64_t row = 0; row < kRows; ++row) EXPECT_EQ(std::isnan(out_.at(row, 0)), row == 2 || row == 5);
  Backward(*context_, false);
  for (const double value : d_token_.values()) EXPECT_TRUE(std::isfinite(value));
}

// Two ranks with the vocabulary's halves, the first of which adds the positions.
TEST_P(EmbeddingTest, PartsOfTheVocabularyAddUpToTheWholeBitForBit) {
  constexpr int64_t kCut = 5;
  Forward();
  Backward(*context_, false);
  const OwnedTensor parts(type_, 2, kRows * hidden_), sum(type_, 1, kRows * hidden_);
  const OwnedTensor d_token(DType::kF32, kVocab, hidden_);
  for (const int64_t part : {0, 1}) {
    const kernels::EmbeddingShape shape{kSequence, kVocab, part * kCut};
    const int64_t table_rows = part == 0 ? kCut : kVocab - kCut;
    const auto rows_of = [&](const OwnedTensor& table) {
      const Tensor& whole = table.tensor();
      return Tensor(whole.as<char>() + part * kCut * hidden_ * SizeOf(whole.dtype), whole.dtype, {table_rows, hidden_});
    };
    const Tensor positions = part == 0 ? position_weight_.tensor() : Tensor();
    const Tensor out(parts.tensor().as<char>() + part * kRows * hidden_ * SizeOf(type_), type_, {kRows, hidden_});
    kernels::EmbeddingForward(*context_, shape, tokens_.vector(), rows_of(token_weight_), positions, out);
    kernels::EmbeddingBackward(*context_, shape, tokens_.vector(), d_out_.tensor(), rows_of(d_token), Tensor(), false);
  }
  kernels::SumInOrder(*context_, parts.tensor(), sum.vector());
  EXPECT_EQ(sum.values(), out_.values());
  EXPECT_EQ(d_token.memory(), d_token_.memory());
}

TEST_P(EmbeddingTest, WithoutPositionsLooksUpTheTokenAlone) {
  kernels::EmbeddingForward(*context_, kShape, tokens_.vector(), token_weight_.tensor(), Tensor(), out_.tensor());
  for (int64_t i = 0; i < kRows * hidden_; ++i) {
    ASSERT_EQ(out_.at(i), token_weight_.at(token(i / hidden_), i % hidden_));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, EmbeddingTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                                          testing::Values(1, 31, 33, 100, 1000)));

TEST(EmbeddingThreadsTest, TwoThreadsGiveTheSameBits) {
  const int64_t rows = 300, hidden = 200, vocab = 20;
  OwnedTensor tokens(DType::kI32, 1, rows);
  for (int64_t row = 0; row < rows; ++row) tokens.set(0, row, static_cast<double>(row * row % vocab));
  const auto d_out = OwnedTensor::Random(DType::kBF16, rows, hidden, 1);
  const OwnedTensor d_token1(DType::kF32, vocab, hidden), d_token2(DType::kF32, vocab, hidden);
  const OwnedTensor d_position1(DType::kF32, 100, hidden), d_position2(DType::kF32, 100, hidden);
  TestContext one(1), two(2);
  kernels::EmbeddingBackward(*one, {100, vocab}, tokens.vector(), d_out.tensor(), d_token1.tensor(),
                             d_position1.tensor(), true);
  kernels::EmbeddingBackward(*two, {100, vocab}, tokens.vector(), d_out.tensor(), d_token2.tensor(),
                             d_position2.tensor(), true);
  EXPECT_EQ(d_token1.memory(), d_token2.memory());
  EXPECT_EQ(d_position1.memory(), d_position2.memory());
}

}  // namespace
}  // namespace muster
