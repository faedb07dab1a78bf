#include "server/cluster/checkpoint_lineage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

v1::Checkpoint MakeCheckpoint(int64_t attempt, int64_t step) {
  v1::Checkpoint checkpoint;
  checkpoint.set_attempt(attempt);
  checkpoint.set_step(step);
  checkpoint.set_path("job/attempt-" + std::to_string(attempt) + "/step-" + std::to_string(step));
  checkpoint.set_bytes(100);
  return checkpoint;
}

TEST(CheckpointLineageTest, SharesOfOneCheckpointAddUp) {
  Checkpoints checkpoints;
  v1::Checkpoint first = MakeCheckpoint(1, 10);
  first.set_seconds(0.5);
  v1::Checkpoint second = MakeCheckpoint(1, 10);
  second.set_seconds(0.25);
  EXPECT_TRUE(RecordCheckpoint(first, &checkpoints));
  EXPECT_FALSE(RecordCheckpoint(second, &checkpoints));
  ASSERT_EQ(checkpoints.size(), 1);
  EXPECT_EQ(checkpoints[0].bytes(), 200);
  EXPECT_EQ(checkpoints[0].seconds(), 0.5);
}

TEST(CheckpointLineageTest, AnAttemptWithoutCheckpointsBeginsAnew) { EXPECT_EQ(ResumePoint({}, 0).path(), ""); }

TEST(CheckpointLineageTest, AFutureThatDidNotHappenIsNeverResumedFrom) {
  Checkpoints checkpoints;
  for (int64_t step : {100, 200, 300}) RecordCheckpoint(MakeCheckpoint(7, step), &checkpoints);
  // Attempt 8 begins at step 200 of attempt 7 (a rewind), so step 300 of attempt 7 is off the line.
  const v1::Checkpoint resumed = ResumePoint(checkpoints, 200);
  EXPECT_EQ(resumed.step(), 200);
  CutLineage(resumed, &checkpoints);
  EXPECT_EQ(ResumePoint(checkpoints, 0).path(), "job/attempt-7/step-200");
  RecordCheckpoint(MakeCheckpoint(8, 300), &checkpoints);
  EXPECT_EQ(ResumePoint(checkpoints, 0).path(), "job/attempt-8/step-300");
}

TEST(CheckpointLineageTest, KeepsTheNewestOnTheLineageAndNamesTheRest) {
  Checkpoints checkpoints;
  for (int64_t step : {1, 2, 3, 4}) RecordCheckpoint(MakeCheckpoint(1, step), &checkpoints);
  EXPECT_THAT(TrimCheckpoints(2, {}, &checkpoints), ElementsAre("job/attempt-1/step-1", "job/attempt-1/step-2"));
  EXPECT_EQ(checkpoints.size(), 2);
  EXPECT_THAT(TrimCheckpoints(2, {}, &checkpoints), IsEmpty());
}

TEST(CheckpointLineageTest, TheNewestAndTheOneInUseAreNeverDeleted) {
  Checkpoints checkpoints;
  for (int64_t step : {1, 2, 3}) RecordCheckpoint(MakeCheckpoint(1, step), &checkpoints);
  EXPECT_THAT(TrimCheckpoints(0, {"job/attempt-1/step-1"}, &checkpoints), ElementsAre("job/attempt-1/step-2"));
  EXPECT_EQ(ResumePoint(checkpoints, 0).step(), 3);
}

TEST(CheckpointLineageTest, WhatIsOffTheLineageIsDeletedFirst) {
  Checkpoints checkpoints;
  for (int64_t step : {1, 2}) RecordCheckpoint(MakeCheckpoint(1, step), &checkpoints);
  CutLineage(ResumePoint(checkpoints, 1), &checkpoints);
  EXPECT_THAT(TrimCheckpoints(5, {"job/attempt-1/step-1"}, &checkpoints), ElementsAre("job/attempt-1/step-2"));
}

}  // namespace
}  // namespace muster
