#include "worker/generate/sampler.h"

#include <cmath>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::Key;

const std::vector<float> kLogits = {0, 2, -1, 2, 1};

// How often each token is drawn at 20,000 positions.
std::map<int32_t, double> Shares(const SamplerOptions& options) {
  constexpr int kDraws = 20000;
  std::map<int32_t, double> shares;
  for (int i = 0; i < kDraws; ++i) shares[SampleToken(kLogits, options, i)] += 1.0 / kDraws;
  return shares;
}

TEST(Sampler, GreedyTakesTheLikeliestAndOfEqualsTheLower) { EXPECT_EQ(SampleToken(kLogits, {.temperature = 0}, 7), 1); }

TEST(Sampler, DrawsBySoftmaxOfTheDividedLogits) {
  for (const double temperature : {0.5, 1.0, 2.0}) {
    double sum = 0;
    for (const float logit : kLogits) sum += std::exp(logit / temperature);
    std::map<int32_t, double> shares = Shares({.temperature = temperature});
    for (size_t token = 0; token < kLogits.size(); ++token) {
      // Four deviations of 20,000 draws.
      EXPECT_NEAR(shares[static_cast<int32_t>(token)], std::exp(kLogits[token] / temperature) / sum, 0.015)
          << "token " << token << " at temperature " << temperature;
    }
  }
}

TEST(Sampler, TopKLeavesOutTheRest) {
  EXPECT_THAT(Shares({.top_k = 3}), Each(Key(AnyOf(1, 3, 4))));
  EXPECT_EQ(Shares({.top_k = 1}).size(), 1u);
  EXPECT_EQ(Shares({.top_k = 100}).size(), 5u);
}

TEST(Sampler, IsAFunctionOfSeedAndPosition) {
  const SamplerOptions seven{.seed = 7};
  const SamplerOptions eight{.seed = 8};
  int different = 0;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(SampleToken(kLogits, seven, i), SampleToken(kLogits, seven, i));
    different += SampleToken(kLogits, seven, i) != SampleToken(kLogits, eight, i);
  }
  EXPECT_GT(different, 20);
}

}  // namespace
}  // namespace muster
