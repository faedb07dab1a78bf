// Layer norm and its gradients against f64.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "tests/worker/kernels/kernel_test_support.h"

namespace muster {
namespace {

constexpr float kEps = 1e-5f;

// A layer norm's tensors, forward and backward.
struct LayerNorm {
  LayerNorm(DType type_in, int64_t rows_in, int64_t cols_in, int64_t gap = 0)
      : type(type_in),
        rows(rows_in),
        cols(cols_in),
        x(OwnedTensor::Random(type, rows, cols, 1, 2, cols + gap)),
        weight(OwnedTensor::Random(type, 1, cols, 2)),
        bias(OwnedTensor::Random(type, 1, cols, 3)),
        d_out(OwnedTensor::Random(type, rows, cols, 4, 1, cols + gap)),
        out(type, rows, cols, cols + gap),
        mean(DType::kF32, 1, rows),
        rstd(DType::kF32, 1, rows),
        d_x(OwnedTensor::Random(type, rows, cols, 5, 1, cols + gap)),
        d_weight(OwnedTensor::Random(DType::kF32, 1, cols, 6)),
        d_bias(OwnedTensor::Random(DType::kF32, 1, cols, 7)),
        partials(DType::kF32, kernels::kColumnPartitions, 2 * cols) {}

  void Forward(KernelContext& context) {
    kernels::LayerNormForward(context, x.tensor(), weight.vector(), bias.vector(), kEps, out.tensor(), mean.vector(),
                              rstd.vector());
  }
  void Backward(KernelContext& context, bool add_to_d_x, bool accumulate) {
    kernels::LayerNormBackward(context, d_out.tensor(), x.tensor(), weight.vector(), mean.vector(), rstd.vector(),
                               d_x.tensor(), add_to_d_x, d_weight.vector(), d_bias.vector(), accumulate,
                               partials.tensor());
  }

  DType type;
  int64_t rows, cols;
  OwnedTensor x, weight, bias, d_out, out, mean, rstd, d_x, d_weight, d_bias, partials;
};

struct Reference {
  std::vector<double> out, mean, rstd, d_x, d_weight, d_bias;
};

Reference Expected(const LayerNorm& norm, bool add_to_d_x, bool accumulate) {
  Reference expected;
  expected.d_weight = accumulate ? norm.d_weight.values() : std::vector<double>(static_cast<size_t>(norm.cols));
  expected.d_bias = accumulate ? norm.d_bias.values() : std::vector<double>(static_cast<size_t>(norm.cols));
  const double count = static_cast<double>(norm.cols);
  for (int64_t row = 0; row < norm.rows; ++row) {
    double mean = 0, variance = 0, average = 0, moment = 0;
    for (int64_t c = 0; c < norm.cols; ++c) mean += norm.x.at(row, c) / count;
    for (int64_t c = 0; c < norm.cols; ++c) variance += std::pow(norm.x.at(row, c) - mean, 2) / count;
    const double rstd = 1 / std::sqrt(variance + static_cast<double>(kEps));
    const auto normal = [&](int64_t c) { return (norm.x.at(row, c) - mean) * rstd; };
    for (int64_t c = 0; c < norm.cols; ++c) {
      const double gradient = norm.d_out.at(row, c) * norm.weight.at(c);
      average += gradient / count;
      moment += gradient * normal(c) / count;
      expected.d_weight[static_cast<size_t>(c)] += norm.d_out.at(row, c) * normal(c);
      expected.d_bias[static_cast<size_t>(c)] += norm.d_out.at(row, c);
    }
    for (int64_t c = 0; c < norm.cols; ++c) {
      expected.out.push_back(normal(c) * norm.weight.at(c) + norm.bias.at(c));
      const double d_x = rstd * (norm.d_out.at(row, c) * norm.weight.at(c) - average - normal(c) * moment);
      expected.d_x.push_back(add_to_d_x ? norm.d_x.at(row, c) + d_x : d_x);
    }
    expected.mean.push_back(mean);
    expected.rstd.push_back(rstd);
  }
  return expected;
}

class LayerNormTest : public testing::TestWithParam<std::tuple<DType, int64_t>> {
 protected:
  TestContext context_;
};

TEST_P(LayerNormTest, AgreesWithTheReferenceForward) {
  const auto& [type, cols] = GetParam();
  for (const int64_t gap : {0, 5}) {
    LayerNorm norm(type, 41, cols, gap);
    const Reference expected = Expected(norm, false, false);
    norm.Forward(*context_);
    EXPECT_EQ(Difference(norm.mean.values(), expected.mean, 1e-6, 1e-6), "");
    EXPECT_EQ(Difference(norm.rstd.values(), expected.rstd, 1e-6, 3e-6), "");
    EXPECT_EQ(Difference(norm.out.values(), expected.out, 1e-5, 1.01 * RoundingError(type)), "");
    EXPECT_TRUE(norm.out.gaps_untouched());
  }
}

TEST_P(LayerNormTest, AgreesWithTheReferenceBackward) {
  const auto& [type, cols] = GetParam();
  for (const bool add_to_d_x : {false, true}) {
    for (const bool accumulate : {false, true}) {
      LayerNorm norm(type, 41, cols, 3);
      const Reference expected = Expected(norm, add_to_d_x, accumulate);
      norm.Forward(*context_);
      norm.Backward(*context_, add_to_d_x, accumulate);
      const double rstd =
          cols == 1 ? 320 : 1;  // a single column has no variance, and the gradient is a difference of large numbers
      EXPECT_EQ(Difference(norm.d_x.values(), expected.d_x, 2e-5 * rstd, 1.01 * RoundingError(type)), "");
      EXPECT_EQ(Difference(norm.d_weight.values(), expected.d_weight, 1e-4, 1e-5), "");
      EXPECT_EQ(Difference(norm.d_bias.values(), expected.d_bias, 1e-5, 1e-5), "");
      EXPECT_TRUE(norm.d_x.gaps_untouched());
    }
  }
}

TEST_P(LayerNormTest, ARowDoesNotDependOnHowManyRowsThereAre) {
  const auto& [type, cols] = GetParam();
  LayerNorm many(type, 41, cols), few(type, 3, cols);  // the first three rows are the same
  for (LayerNorm* norm : {&many, &few}) {
    norm->Forward(*context_);
    norm->Backward(*context_, false, false);
  }
  for (int64_t i = 0; i < 3 * cols; ++i) {
    if (many.d_out.at(i) != few.d_out.at(i)) continue;
    ASSERT_EQ(many.out.at(i), few.out.at(i));
    ASSERT_EQ(many.d_x.at(i), few.d_x.at(i));
  }
}

TEST_P(LayerNormTest, TwoThreadsGiveTheSameBits) {
  const auto& [type, cols] = GetParam();
  TestContext two(2);
  const int64_t rows = 40000 / cols + 1;
  LayerNorm a(type, rows, cols), b(type, rows, cols);
  a.Forward(*context_);
  a.Backward(*context_, true, true);
  b.Forward(*two);
  b.Backward(*two, true, true);
  EXPECT_EQ(a.out.memory(), b.out.memory());
  EXPECT_EQ(a.d_x.memory(), b.d_x.memory());
  EXPECT_EQ(a.d_weight.memory(), b.d_weight.memory());
  EXPECT_EQ(a.d_bias.memory(), b.d_bias.memory());
}

TEST_P(LayerNormTest, ANanSpoilsItsRowAndNoOther) {
  const auto& [type, cols] = GetParam();
  LayerNorm norm(type, 5, cols);
  norm.x.set(2, cols - 1, std::nan(""));
  norm.Forward(*context_);
  for (int64_t row = 0; row < 5; ++row) EXPECT_EQ(std::isnan(norm.out.at(row, 0)), row == 2);
}

std::string NameOfCase(const testing::TestParamInfo<LayerNormTest::ParamType>& info) {
  return std::string(NameOf(std::get<0>(info.param))) + "_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Sizes, LayerNormTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                                          testing::Values(1, 31, 33, 100, 1000)),
                         NameOfCase);

}  // namespace
}  // namespace muster
