// The same job gives the same bits, run after run and through any stop and resume.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/worker/engine/training_harness.h"

namespace muster {
namespace {

// A directory of its own for each test, gone afterwards.
class Determinism : public testing::Test {
 protected:
  Determinism() {
    std::string pattern = absl::StrCat(testing::TempDir(), "/determinism-XXXXXX");
    root_ = mkdtemp(pattern.data());
  }
  ~Determinism() override { std::filesystem::remove_all(root_); }

  EngineConfig Job() const {
    EngineConfig config = Cut(TinyJob(), {4}, 2);
    config.checkpoint.directory = root_;
    return config;
  }

  // The job's later life: resumed from `checkpoint` as the next attempt.
  static EngineConfig Resumed(EngineConfig config, const CheckpointReport& checkpoint) {
    config.checkpoint.resume_from = checkpoint.directory;
    config.checkpoint.attempt += 1;
    return config;
  }

  // Expects that `resumed` ends as `whole` did, and that its losses are the last ones of it.
  static void ExpectContinues(const std::vector<RankResult>& resumed, const std::vector<RankResult>& whole) {
    ASSERT_TRUE(resumed[0].status.ok()) << resumed[0].status.ToString();
    EXPECT_EQ(MergedWeights(resumed), MergedWeights(whole));
    const size_t skipped = whole[0].steps.size() - resumed[0].steps.size();
    for (size_t i = 0; i < resumed[0].steps.size(); ++i) {
      EXPECT_EQ(resumed[0].steps[i].step, whole[0].steps[i + skipped].step);
      EXPECT_EQ(resumed[0].steps[i].loss, whole[0].steps[i + skipped].loss) << "step " << resumed[0].steps[i].step;
    }
  }

  std::string root_;
};

TEST_F(Determinism, TwoRunsOfOneJobAreIdentical) {
  EngineConfig job = Cut(TinyJob(), {4}, 2);
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    job.layout.precision = precision;
    ExpectIdentical(RunJob(job), RunJob(job));
  }
}

TEST_F(Determinism, AnotherSeedGivesAnotherRun) {
  EngineConfig job = TinyJob();
  job.training.steps = 1;
  const std::vector<double> first = Losses(RunJob(job));
  job.training.seed += 1;
  EXPECT_NE(Losses(RunJob(job)), first);
}

TEST_F(Determinism, ResumingFromAnIntervalCheckpointContinuesBitForBit) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    EngineConfig job = Job();
    job.layout.precision = precision;
    job.checkpoint.directory = absl::StrCat(root_, precision == Precision::kFp32 ? "/fp32" : "/bf16");
    job.checkpoint.every_steps = 7;
    const std::vector<RankResult> whole = RunJob(job);
    ASSERT_TRUE(whole[0].status.ok()) << whole[0].status.ToString();
    ASSERT_EQ(whole[0].checkpoints.size(), 3u);  // 7, 14 and the last step
    EXPECT_EQ(whole[0].checkpoints[1].step, 14);
    ExpectContinues(RunJob(Resumed(job, whole[0].checkpoints[1])), whole);
  }
}

TEST_F(Determinism, StoppingAtAnyStepAndResumingContinuesBitForBit) {
  EngineConfig job = Job();
  job.checkpoint.directory.clear();
  const std::vector<RankResult> whole = RunJob(job);
  for (const int64_t stop_after : {1, 6, 19}) {
    job.checkpoint.directory = absl::StrCat(root_, "/", stop_after);
    // Any one rank is told, and while it reports a step: all stop after the next.
    const std::vector<RankResult> stopped =
        RunJob(job, {.on_step = [&](int64_t rank, const StepReport& step, Trainer& trainer) {
                 if (rank == 2 && step.step == stop_after) trainer.RequestStop();
               }});
    ASSERT_TRUE(stopped[0].status.ok()) << stopped[0].status.ToString();
    const int64_t last = std::min<int64_t>(stop_after + 1, 20);
    for (const RankResult& rank : stopped) {
      EXPECT_EQ(rank.outcome, last == 20 ? TrainingOutcome::kCompleted : TrainingOutcome::kStopped);
      EXPECT_EQ(rank.steps.back().step, last);
      ASSERT_EQ(rank.checkpoints.size(), 1u);
      EXPECT_EQ(rank.checkpoints[0].step, last);
    }
    ExpectContinues(RunJob(Resumed(job, stopped[0].checkpoints[0])), whole);
  }
}

TEST_F(Determinism, AStopNeitherLosesNorRepeatsAValidation) {
  const SyntheticSource validation(16, TinyModel().vocab);
  EngineConfig job = Job();
  job.validation = {.every_steps = 4, .windows = 4};
  job.checkpoint.directory.clear();
  const std::vector<RankResult> whole = RunJob(job, {.validation = &validation});
  for (const int64_t stop_at : {7, 8, 9}) {
    job.checkpoint.directory = absl::StrCat(root_, "/validation-", stop_at);
    const std::vector<RankResult> stopped =
        RunJob(job, {.validation = &validation, .on_step = [&](int64_t, const StepReport& step, Trainer& trainer) {
                       if (step.step == stop_at - 1) trainer.RequestStop();
                     }});
    ASSERT_EQ(stopped[0].checkpoints.size(), 1u);
    const std::vector<RankResult> resumed =
        RunJob(Resumed(job, stopped[0].checkpoints[0]), {.validation = &validation});
    std::vector<ValidationReport> all = stopped[0].validations;
    all.insert(all.end(), resumed[0].validations.begin(), resumed[0].validations.end());
    ASSERT_EQ(all.size(), whole[0].validations.size()) << "stopped at " << stop_at;
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].step, whole[0].validations[i].step) << "stopped at " << stop_at;
      EXPECT_EQ(all[i].loss, whole[0].validations[i].loss) << "stopped at " << stop_at;
    }
  }
}

TEST_F(Determinism, ResumingAtAnotherCutContinuesBitForBit) {
  EngineConfig job = Job();
  job.checkpoint.every_steps = 10;
  const std::vector<RankResult> whole = RunJob(job);
  ASSERT_TRUE(whole[0].status.ok()) << whole[0].status.ToString();
  const EngineConfig resumed = Cut(Resumed(job, whole[0].checkpoints[0]), {2, 5, 8}, 2);
  ExpectContinues(RunJob(resumed), whole);
}

}  // namespace
}  // namespace muster
