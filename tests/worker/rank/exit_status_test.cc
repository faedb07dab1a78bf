#include "worker/rank/exit_status.h"

#include <gtest/gtest.h>

#include "common/base/exit_codes.h"

namespace muster {
namespace {

TEST(ExitStatusTest, WhatTheJobIsToBlameForIsNotRetried) {
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("data/train.bin"), RankStage::kPrepare), kExitUserError);
  EXPECT_EQ(ExitCodeOf(absl::OutOfRangeError("token 300"), RankStage::kTrain), kExitUserError);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("loss is not finite"), RankStage::kTrain), kExitUserError);
  EXPECT_EQ(ExitCodeOf(absl::UnimplementedError("tensor parallelism"), RankStage::kBuild), kExitUserError);
}

TEST(ExitStatusTest, APeerOrADeadlineIsRetried) {
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("rank 2 is gone"), RankStage::kTrain), kExitInfrastructure);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("rank 2 is late"), RankStage::kBuild), kExitInfrastructure);
}

TEST(ExitStatusTest, NothingThatFailsWhileJoiningIsTheJobsFault) {
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("no such interface"), RankStage::kJoin), kExitInfrastructure);
  EXPECT_EQ(ExitCodeOf(absl::AbortedError("rank 1 voted against"), RankStage::kJoin), kExitInfrastructure);
}

TEST(ExitStatusTest, ExhaustionIsMemoryWhileBuildingAndDiskLater) {
  EXPECT_EQ(ExitCodeOf(absl::ResourceExhaustedError("the arena"), RankStage::kBuild), kExitOutOfMemory);
  EXPECT_EQ(ExitCodeOf(absl::ResourceExhaustedError("no space left"), RankStage::kTrain), kExitInfrastructure);
}

TEST(ExitStatusTest, LostDataIsTheCheckpointWhileBuildingAndTheDatasetOtherwise) {
  EXPECT_EQ(ExitCodeOf(absl::DataLossError("rank-00000.safetensors"), RankStage::kBuild), kExitBadCheckpoint);
  EXPECT_EQ(ExitCodeOf(absl::DataLossError("train.bin"), RankStage::kPrepare), kExitUserError);
}

TEST(ExitStatusTest, ARunThatEndsAsItShouldSaysHow) {
  EXPECT_EQ(ExitCodeOf(TrainingOutcome::kCompleted), kExitCompleted);
  EXPECT_EQ(ExitCodeOf(TrainingOutcome::kStopped), kExitStopped);
  EXPECT_EQ(ExitCodeOf(TrainingOutcome::kRewind), kExitRewind);
}

TEST(ExitStatusTest, OkIsCompleted) { EXPECT_EQ(ExitCodeOf(absl::OkStatus(), RankStage::kTrain), kExitCompleted); }

}  // namespace
}  // namespace muster
