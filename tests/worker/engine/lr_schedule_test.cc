#include "worker/engine/lr_schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace muster {
namespace {

TrainingOptions Options() {
  TrainingOptions options;
  options.steps = 14;
  options.adamw.learning_rate = 8;
  options.schedule = {.warmup_steps = 4, .decay = ScheduleOptions::Decay::kCosine, .min_lr_ratio = 0.5};
  return options;
}

TEST(LearningRate, RisesLinearlyToThePeak) {
  EXPECT_DOUBLE_EQ(LearningRate(Options(), 1), 2);
  EXPECT_DOUBLE_EQ(LearningRate(Options(), 4), 8);
}

TEST(LearningRate, FallsAsACosineTowardsTheMinimum) {
  EXPECT_DOUBLE_EQ(LearningRate(Options(), 5), 8);
  EXPECT_DOUBLE_EQ(LearningRate(Options(), 10), 6);  // half of the way, half of the fall
  for (int64_t update = 5; update <= 14; ++update) {
    const double behind = static_cast<double>(update - 1 - 4) / 10;
    EXPECT_NEAR(LearningRate(Options(), update), 4 + (8 - 4) * (1 + std::cos(std::acos(-1.0) * behind)) / 2, 1e-14);
  }
}

TEST(LearningRate, StaysAtThePeakWithoutDecay) {
  TrainingOptions options = Options();
  options.schedule.decay = ScheduleOptions::Decay::kConstant;
  EXPECT_DOUBLE_EQ(LearningRate(options, 14), 8);
}

TEST(LearningRate, FallsOnALineTowardsTheMinimum) {
  TrainingOptions options = Options();
  options.schedule.decay = ScheduleOptions::Decay::kLinear;
  for (int64_t update = 5; update <= 14; ++update) {
    const double behind = static_cast<double>(update - 1 - 4) / 10;
    EXPECT_DOUBLE_EQ(LearningRate(options, update), 8 - behind * (8 - 4)) << update;
  }
}

TEST(LearningRate, IsStableAndFallsOnALineOverTheLastStepsOfWsd) {
  TrainingOptions options = Options();
  options.schedule.decay = ScheduleOptions::Decay::kWarmupStableDecay;
  options.schedule.decay_steps = 4;
  const double expected[] = {2, 4, 6, 8, 8, 8, 8, 8, 8, 8, 8, 7, 6, 5};
  for (int64_t update = 1; update <= 14; ++update) {
    EXPECT_DOUBLE_EQ(LearningRate(options, update), expected[update - 1]) << update;
  }
}

TEST(LearningRate, DecaysOverATenthOfTheStepsOfWsdUnlessTold) {
  TrainingOptions options;
  options.steps = 200;
  options.schedule.decay = ScheduleOptions::Decay::kWarmupStableDecay;
  EXPECT_EQ(DecaySteps(options), 20);
  EXPECT_EQ(LearningRate(options, 181), options.adamw.learning_rate);
  EXPECT_LT(LearningRate(options, 182), options.adamw.learning_rate);
  options.steps = 5;
  EXPECT_EQ(DecaySteps(options), 1);
}

TEST(LearningRate, MoreStepsOfWsdLeaveThoseBeforeTheDecayAsTheyWere) {
  TrainingOptions options = Options();
  options.schedule.decay = ScheduleOptions::Decay::kWarmupStableDecay;
  options.schedule.decay_steps = 4;
  TrainingOptions longer = options;
  longer.steps = 100;
  for (int64_t update = 1; update <= 11; ++update)
    EXPECT_EQ(LearningRate(options, update), LearningRate(longer, update));
}

TEST(LearningRate, NeedsNoWarmUp) {
  TrainingOptions options = Options();
  options.schedule.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(LearningRate(options, 1), 8);
}

TEST(LearningRate, MayWarmUpForTheWholeRun) {
  TrainingOptions options = Options();
  options.schedule.warmup_steps = 28;
  EXPECT_DOUBLE_EQ(LearningRate(options, 14), 4);
}

}  // namespace
}  // namespace muster
