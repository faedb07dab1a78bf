#include "server/job/progress.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster {
namespace {

v1::Job MakeJob() {
  v1::Job job;
  job.mutable_resolved_spec()->mutable_training()->set_steps(100);
  for (int64_t rank = 0; rank < 2; ++rank) job.add_placements()->set_rank(rank);
  return job;
}

v1::StepReport MakeStep(int64_t step, bool leader) {
  v1::StepReport report;
  report.set_step(step);
  report.set_tokens(1000);
  report.set_loss(3);
  report.set_seconds(0.5);
  report.set_leader(leader);
  report.mutable_phases()->set_forward(leader ? 0.3 : 0.1);
  return report;
}

TEST(ProgressTest, TokensPerSecondIsTokensOverWallTimeSinceTheFirstStepBegan) {
  ProgressTracker tracker;
  v1::Job job = MakeJob();
  tracker.BeginAttempt(&job);
  const absl::Time begin = absl::FromUnixSeconds(1000);
  tracker.OnStep(0, MakeStep(1, true), begin + absl::Seconds(0.5), &job);
  EXPECT_DOUBLE_EQ(job.progress().tokens_per_second(), 2000);
  // A validation of three and a half seconds counts, and so do steps that were left out of the reports.
  tracker.OnStep(0, MakeStep(4, true), begin + absl::Seconds(5), &job);
  EXPECT_DOUBLE_EQ(job.progress().tokens_per_second(), 800);
  EXPECT_EQ(job.progress().tokens(), 4000);
  EXPECT_EQ(job.progress().remaining().seconds(), 120);  // 96 steps of 1.25 s
}

TEST(ProgressTest, OnlyTheLeaderSpeaksForTheJobAndPhasesAreTheMeanOverRanks) {
  ProgressTracker tracker;
  v1::Job job = MakeJob();
  tracker.BeginAttempt(&job);
  tracker.OnStep(1, MakeStep(1, false), absl::FromUnixSeconds(1), &job);
  EXPECT_EQ(job.progress().step(), 0);
  tracker.OnStep(0, MakeStep(1, true), absl::FromUnixSeconds(1), &job);
  EXPECT_EQ(job.progress().step(), 1);
  EXPECT_DOUBLE_EQ(job.progress().phases().forward(), 0.2);
  EXPECT_EQ(job.ranks(1).step(), 1);
  EXPECT_DOUBLE_EQ(job.ranks(1).phases().forward(), 0.1);
}

TEST(ProgressTest, ARankCountsTheTokensOfItsReplicaAndTheJobThoseOfAllReplicas) {
  ProgressTracker tracker;
  v1::Job job = MakeJob();
  job.mutable_resolved_spec()->mutable_parallelism()->set_data(2);
  tracker.BeginAttempt(&job);
  for (int64_t step = 1; step <= 3; ++step) tracker.OnStep(0, MakeStep(step, true), absl::FromUnixSeconds(step), &job);
  EXPECT_EQ(job.ranks(0).tokens(), 1500);
  EXPECT_EQ(job.progress().tokens(), 3000);
}

TEST(ProgressTest, AValidationCountsOnceWhoeverReportsIt) {
  ProgressTracker tracker;
  v1::Job job = MakeJob();
  tracker.BeginAttempt(&job);
  v1::ValidationReport unknown;
  unknown.set_loss(std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(tracker.OnValidation(unknown, &job));
  v1::ValidationReport report;
  report.set_loss(5.5);
  EXPECT_TRUE(tracker.OnValidation(report, &job));
  EXPECT_FALSE(tracker.OnValidation(report, &job));
  report.set_step(50);
  report.set_loss(2.5);
  EXPECT_TRUE(tracker.OnValidation(report, &job));
  EXPECT_EQ(job.progress().validations_size(), 2);
  EXPECT_DOUBLE_EQ(job.progress().first_validation_loss(), 5.5);
  EXPECT_DOUBLE_EQ(job.progress().validation_loss(), 2.5);
  EXPECT_EQ(job.progress().validation_step(), 50);
}

}  // namespace
}  // namespace muster
