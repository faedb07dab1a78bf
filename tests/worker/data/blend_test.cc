#include "worker/data/blend.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(Blend, OfOneDatasetIsTheDataset) {
  const Blend blend = Blend::Make({0.3}).value();
  for (int64_t i : {int64_t{0}, int64_t{1}, kBlendPeriod - 1, kBlendPeriod, 5 * kBlendPeriod + 3}) {
    EXPECT_EQ(blend(i).dataset, 0);
    EXPECT_EQ(blend(i).sample, i);
  }
}

TEST(Blend, UsesEverySampleOfEveryDatasetInOrder) {
  const Blend blend = Blend::Make({1, 2, 0.5}).value();
  int64_t next[3] = {0, 0, 0};
  for (int64_t i = 0; i < 3 * kBlendPeriod; ++i) {
    const Blend::Choice choice = blend(i);
    ASSERT_EQ(choice.sample, next[choice.dataset]++) << i;
  }
}

TEST(Blend, NeverStraysFarFromTheWeights) {
  const double weights[3] = {7, 2, 1};
  const Blend blend = Blend::Make(weights).value();
  int64_t taken[3] = {0, 0, 0};
  for (int64_t i = 0; i < 3 * kBlendPeriod; ++i) {
    ++taken[blend(i).dataset];
    for (int d = 0; d < 3; ++d) {
      EXPECT_LE(std::abs(static_cast<double>(taken[d]) - weights[d] / 10 * static_cast<double>(i + 1)), 3) << i;
    }
  }
}

TEST(Blend, RefusesWeightsThatItCannotHonour) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Blend::Make({}).status().code(), absl::StatusCode::kInvalidArgument);
  for (double bad : {0.0, -1.0, nan, std::numeric_limits<double>::infinity(), 1e-5}) {
    EXPECT_EQ(Blend::Make({1.0, bad}).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace muster
