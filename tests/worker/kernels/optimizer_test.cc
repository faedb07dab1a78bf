// AdamW against its definition in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "tests/worker/kernels/kernel_test_support.h"

namespace muster {
namespace {

class AdamWTest : public testing::TestWithParam<std::tuple<DType, int64_t>> {};

TEST_P(AdamWTest, TenStepsAgreeWithTheReference) {
  const auto& [type, count] = GetParam();
  TestContext context;
  const OwnedTensor master = OwnedTensor::Random(DType::kF32, 1, count, 1, 0.1);
  const OwnedTensor first(DType::kF32, 1, count), second(DType::kF32, 1, count);
  const OwnedTensor parameter(type, 1, count);
  std::vector<double> weights = master.values();
  std::vector<double> averages(weights.size()), squares(weights.size());
  kernels::AdamWArgs args;
  args.master = master.vector();
  args.first = first.vector();
  args.second = second.vector();
  args.parameter = parameter.vector();
  args.gradient_scale = 0.5f;
  args.learning_rate = 1e-2;
  args.beta1 = 0.9;
  args.beta2 = 0.999;
  args.eps = 1e-8;
  args.weight_decay = 0.1;
  for (int step = 1; step <= 10; ++step) {
    const OwnedTensor gradient = OwnedTensor::Random(DType::kF32, 1, count, 100 + static_cast<uint64_t>(step));
    args.gradient = gradient.vector();
    args.step = step;
    kernels::AdamW(*context, args);
    for (size_t i = 0; i < weights.size(); ++i) {
      const double g = 0.5 * gradient.at(static_cast<int64_t>(i));
      averages[i] = 0.9 * averages[i] + 0.1 * g;
      squares[i] = 0.999 * squares[i] + 0.001 * g * g;
      weights[i] *= 1 - 1e-2 * 0.1;
      const double root = std::sqrt(squares[i] / (1 - std::pow(0.999, step)));
      weights[i] -= 1e-2 * (averages[i] / (1 - std::pow(0.9, step))) / (root + 1e-8);
    }
  }
  EXPECT_EQ(Difference(first.values(), averages, 1e-7, 1e-5), "");
  EXPECT_EQ(Difference(second.values(), squares, 1e-9, 1e-5), "");
  EXPECT_EQ(Difference(master.values(), weights, 1e-7, 1e-5), "");
  OwnedTensor rounded(type, 1, count);
  for (int64_t i = 0; i < count; ++i) rounded.set(0, i, master.at(i));
  EXPECT_EQ(parameter.memory(), rounded.memory());
}

TEST_P(AdamWTest, TheParameterMayBeTheMaster) {
  const auto& [type, count] = GetParam();
  TestContext context;
  const OwnedTensor gradient = OwnedTensor::Random(DType::kF32, 1, count, 2);
  const OwnedTensor apart = OwnedTensor::Random(DType::kF32, 1, count, 3);
  const OwnedTensor together = apart.Copy();
  const OwnedTensor parameter(DType::kF32, 1, count);
  for (const OwnedTensor* master : {&apart, &together}) {
    const OwnedTensor first(DType::kF32, 1, count), second(DType::kF32, 1, count);
    kernels::AdamWArgs args;
    args.gradient = gradient.vector();
    args.master = master->vector();
    args.first = first.vector();
    args.second = second.vector();
    args.parameter = master == &apart ? parameter.vector() : together.vector();
    args.learning_rate = 1e-3;
    args.beta1 = 0.9;
    args.beta2 = 0.95;
    args.eps = 1e-8;
    kernels::AdamW(*context, args);
  }
  EXPECT_EQ(apart.memory(), together.memory());
  EXPECT_EQ(apart.memory(), parameter.memory());
}

TEST_P(AdamWTest, TwoThreadsGiveTheSameBits) {
  const auto& [type, count] = GetParam();
  TestContext one(1), two(2);
  const OwnedTensor gradient = OwnedTensor::Random(DType::kF32, 1, count, 4);
  std::vector<std::vector<uint8_t>> results;
  for (TestContext* context : {&one, &two}) {
    const OwnedTensor master = OwnedTensor::Random(DType::kF32, 1, count, 5);
    const OwnedTensor first(DType::kF32, 1, count), second(DType::kF32, 1, count), parameter(type, 1, count);
    kernels::AdamWArgs args;
    args.gradient = gradient.vector();
    args.master = master.vector();
    args.first = first.vector();
    args.second = second.vector();
    args.parameter = parameter.vector();
    args.learning_rate = 1e-3;
    args.beta1 = 0.9;
    args.beta2 = 0.95;
    args.eps = 1e-8;
    kernels::AdamW(**context, args);
    results.push_back(master.memory());
  }
  EXPECT_EQ(results[0], results[1]);
}

std::string NameOfCase(const testing::TestParamInfo<AdamWTest::ParamType>& info) {
  return std::string(NameOf(std::get<0>(info.param))) + "_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Sizes, AdamWTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                                          testing::Values(1, 31, 33, 1000, 50000)),
                         NameOfCase);

}  // namespace
}  // namespace muster
