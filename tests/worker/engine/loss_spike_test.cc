#include "worker/engine/loss_spike.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace muster {
namespace {

// `count` losses around `level` with normal noise.
LossSpikeDetector Noisy(double level, double deviation, int count) {
  LossSpikeDetector detector(6, {});
  std::mt19937 random(7);
  std::normal_distribution<double> noise(level, deviation);
  for (int i = 0; i < count; ++i) detector.Accept(noise(random));
  return detector;
}

TEST(LossSpike, JudgesNothingBeforeItHasSeenEnough) {
  LossSpikeDetector detector(6, {});
  for (size_t i = 0; i < LossSpikeDetector::kLeast; ++i) {
    EXPECT_FALSE(detector.IsSpike(1e9)) << i;
    detector.Accept(3);
  }
  EXPECT_TRUE(detector.IsSpike(1e9));
}

TEST(LossSpike, TheLimitIsSoManyDeviationsAboveTheMedian) {
  // Median 5, distances 0, 1, 1, 2, 2 ... : MAD 1 of the sixteen around it.
  LossSpikeDetector detector(6, {3, 4, 4, 5, 5, 5, 5, 6, 6, 7, 4, 6, 5, 5, 3, 7});
  EXPECT_DOUBLE_EQ(detector.Median(), 5);
  EXPECT_DOUBLE_EQ(detector.Limit(), 5 + 6 * 1.4826);
}

TEST(LossSpike, AStrayLossInTheWindowDoesNotRaiseTheLimit) {
  LossSpikeDetector detector = Noisy(3, 0.1, 64);
  const double before = detector.Limit();
  EXPECT_NEAR(before, 3.6, 0.15);
  detector.Accept(500);
  EXPECT_NEAR(detector.Limit(), before, 0.05);
}

TEST(LossSpike, NoiseOfLargeBatchesAloneIsNone) {
  const LossSpikeDetector detector = Noisy(2, 0.005, 64);
  EXPECT_FALSE(detector.IsSpike(2.1)) << "twenty deviations, and harmless";
  EXPECT_TRUE(detector.IsSpike(2.3));
}

TEST(LossSpike, NeverFiresOnNoiseAroundAFallingLoss) {
  LossSpikeDetector detector(6, {});
  std::mt19937 random(11);
  std::normal_distribution<double> noise(0, 0.05);
  for (int step = 0; step < 5000; ++step) {
    const double loss = 2 + 8 * std::exp(-step / 100.0) + noise(random);
    ASSERT_FALSE(detector.IsSpike(loss)) << step;
    detector.Accept(loss);
  }
}

TEST(LossSpike, KeepsTheNewestLossesOnly) {
  LossSpikeDetector detector(6, {});
  for (int i = 0; i < 200; ++i) detector.Accept(i);
  ASSERT_EQ(detector.accepted().size(), LossSpikeDetector::kWindow);
  EXPECT_EQ(detector.accepted().back(), 199);
}

}  // namespace
}  // namespace muster
