#include "worker/engine/loss_scaler.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Verdict = LossScaler::Verdict;

TEST(LossScaler, HalvesWithTheSecondOverflowAndFromThenOnWithEach) {
  LossScaler scaler;
  EXPECT_EQ(scaler.scale(), 65536);
  EXPECT_EQ(scaler.Update(true), Verdict::kOverflow);
  EXPECT_EQ(scaler.scale(), 65536) << "one alone may be a bad batch";
  scaler.Update(false);
  EXPECT_EQ(scaler.Update(true), Verdict::kOverflow);
  EXPECT_EQ(scaler.scale(), 32768);
  EXPECT_EQ(scaler.Update(true), Verdict::kOverflow);
  EXPECT_EQ(scaler.scale(), 16384);
}

TEST(LossScaler, DoublesAfterAThousandCleanStepsInARowAndForgivesAnOverflowAgain) {
  LossScaler scaler;
  scaler.Update(true);
  scaler.Update(true);
  for (int i = 0; i < 999; ++i) scaler.Update(false);
  EXPECT_EQ(scaler.scale(), 32768);
  scaler.Update(true);  // the row is broken, and the hysteresis still used up
  EXPECT_EQ(scaler.scale(), 16384);
  for (int i = 0; i < 999; ++i) EXPECT_EQ(scaler.Update(false), Verdict::kClean);
  EXPECT_EQ(scaler.scale(), 16384);
  scaler.Update(false);
  EXPECT_EQ(scaler.scale(), 32768);
  scaler.Update(true);
  EXPECT_EQ(scaler.scale(), 32768);
}

TEST(LossScaler, SaysSoWhenItOverflowsAtTheFloor) {
  LossScaler scaler;
  for (int i = 0; i < 17; ++i) EXPECT_EQ(scaler.Update(true), Verdict::kOverflow) << i;
  EXPECT_EQ(scaler.scale(), 1);
  EXPECT_EQ(scaler.Update(true), Verdict::kAtFloor);
  scaler.FallBack();
  EXPECT_EQ(scaler.scale(), 1);
  EXPECT_TRUE(scaler.state().fell_back);
}

TEST(LossScaler, GoesOnFromItsState) {
  LossScaler whole;
  whole.Update(true);
  for (int i = 0; i < 600; ++i) whole.Update(false);
  LossScaler resumed(whole.state());
  for (int i = 0; i < 400; ++i) {
    whole.Update(false);
    resumed.Update(false);
  }
  EXPECT_EQ(resumed.scale(), 131072);
  EXPECT_EQ(resumed.scale(), whole.scale());
}

}  // namespace
}  // namespace muster
