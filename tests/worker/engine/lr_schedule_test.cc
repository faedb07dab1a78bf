#include "worker/engine/lr_schedule.h"

#include <gtest/gtest.h>

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
  EXPECT_GT(LearningRate(Options(), 14), 4);
  EXPECT_LT(LearningRate(Options(), 14), LearningRate(Options(), 13));
}

TEST(LearningRate, StaysAtThePeakWithoutDecay) {
  TrainingOptions options = Options();
  options.schedule.decay = ScheduleOptions::Decay::kConstant;
  EXPECT_DOUBLE_EQ(LearningRate(options, 14), 8);
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
