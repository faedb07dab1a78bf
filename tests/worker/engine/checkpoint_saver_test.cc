// Checkpoints that are written beside training change nothing of it, are whole or not there, and say why when they
// fail.
#include "worker/engine/checkpoint_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/formats/checkpoint_paths.h"
#include "common/formats/checkpoint_reader.h"
#include "tests/support/temporary_directory.h"
#include "tests/worker/engine/training_harness.h"
#include "worker/checkpoint/checkpoint_directory.h"

namespace muster {
namespace {

// Two stages of two replicas, a checkpoint every four of twenty steps.
EngineConfig SavingJob(const TemporaryDirectory& root, bool asynchronous) {
  EngineConfig job = Cut(TinyJob(), {5}, 2);
  job.checkpoint.directory = root.path();
  job.checkpoint.every_steps = 4;
  job.layout.checkpoint_staging = asynchronous;
  return job;
}

std::vector<int64_t> StepsOf(const std::vector<CheckpointReport>& reports) {
  std::vector<int64_t> steps;
  for (const CheckpointReport& report : reports) steps.push_back(report.step);
  return steps;
}

TEST(CheckpointSaver, WritesTheSameBytesBesideTrainingAsWhenItStandsStill) {
  const TemporaryDirectory beside;
  const TemporaryDirectory still;
  const std::vector<RankResult> asynchronous = RunJob(SavingJob(beside, true));
  const std::vector<RankResult> synchronous = RunJob(SavingJob(still, false));
  ExpectIdentical(asynchronous, synchronous);
  const std::vector<int64_t> steps = {4, 8, 12, 16, 20};
  for (const RankResult& rank : asynchronous) EXPECT_EQ(StepsOf(rank.checkpoints), steps);
  for (const int64_t step : steps) {
    for (int64_t rank = 0; rank < 4; ++rank) {
      const std::string shard = absl::StrCat("attempt-1/step-", step, "/", ShardFileName(rank));
      EXPECT_EQ(beside.Get(shard), still.Get(shard)) << shard;
      EXPECT_FALSE(beside.Get(shard).empty()) << shard;
    }
  }
}

TEST(CheckpointSaver, ContinuesToTheBitFromWhatWasWrittenBesideTraining) {
  const TemporaryDirectory root;
  EngineConfig job = SavingJob(root, true);
  const std::vector<RankResult> whole = RunJob(job);
  job.checkpoint.resume_from = root.File("attempt-1/step-12");
  job.checkpoint.attempt = 2;
  const std::vector<RankResult> resumed = RunJob(job);
  EXPECT_EQ(resumed[0].steps.size(), 8u);
  EXPECT_EQ(resumed[0].steps.back().loss, whole[0].steps.back().loss);
  EXPECT_EQ(MergedWeights(resumed), MergedWeights(whole));
}

TEST(CheckpointSaver, SpreadsACheckpointOverTheReplicas) {
  const TemporaryDirectory root;
  const std::vector<RankResult> ranks = RunJob(SavingJob(root, true));
  // Replicas of the first stage, and of the second, write as much as each other: their rows differ by one at the most.
  for (const size_t stage : {size_t{0}, size_t{2}}) {
    const double first = static_cast<double>(ranks[stage].checkpoints[0].bytes);
    const double second = static_cast<double>(ranks[stage + 1].checkpoints[0].bytes);
    EXPECT_NEAR(first / second, 1, 0.1);
  }
}

TEST(CheckpointSaver, TellsTheTimeThatTrainingStoodStillAndThatInTheBackground) {
  const TemporaryDirectory root;
  for (const RankResult& rank : RunJob(SavingJob(root, true))) {
    double in_phase = 0;
    for (const StepReport& step : rank.steps) in_phase += step.phase_seconds[static_cast<size_t>(Phase::kCheckpoint)];
    double stood_still = 0;
    for (const CheckpointReport& report : rank.checkpoints) {
      stood_still += report.seconds;
      EXPECT_GT(report.background_seconds, 0);
    }
    EXPECT_LE(stood_still, in_phase);
    EXPECT_GE(stood_still, 0.9 * in_phase);
  }
}

TEST(CheckpointSaver, KeepsItsCopyWithinWhatTheLedgerPlanned) {
  const TemporaryDirectory root;
  for (const bool asynchronous : {false, true}) {
    EngineConfig job = SavingJob(root, asynchronous);
    job.checkpoint.directory.clear();
    job.checkpoint.every_steps = 0;
    job.training.steps = 1;
    for (const RankResult& rank : RunJob(job)) {
      EXPECT_EQ(rank.steps[0].memory.used_bytes, rank.steps[0].memory.planned_bytes);
    }
  }
}

void FillDeviceAt(const TemporaryDirectory& root, int64_t step) {
  const std::string directory = absl::StrCat("attempt-1/step-", step, ".tmp");
  std::filesystem::create_directories(root.File(directory));
  root.PutFullDevice(absl::StrCat(directory, "/", ShardFileName(2)));
}

TEST(CheckpointSaver, GoesOnAfterACheckpointThatOneRankCouldNotWrite) {
  for (const bool asynchronous : {false, true}) {
    const TemporaryDirectory root;
    FillDeviceAt(root, 8);
    for (const RankResult& rank : RunJob(SavingJob(root, asynchronous))) {
      ASSERT_TRUE(rank.status.ok()) << rank.status;
      EXPECT_EQ(StepsOf(rank.checkpoints), (std::vector<int64_t>{4, 12, 16, 20}));
      ASSERT_EQ(rank.events.size(), 1u);
      EXPECT_EQ(rank.events[0].type, "CHECKPOINT_FAILED");
      EXPECT_THAT(rank.events[0].message,
                  testing::HasSubstr("checkpoint of step 8 was not written: rank 2: no space left on device writing"));
    }
    EXPECT_FALSE(std::filesystem::exists(root.File("attempt-1/step-8.tmp"))) << "what the others wrote is removed";
  }
}

TEST(CheckpointSaver, FailsTheRunWhoseLastCheckpointCannotBeWritten) {
  const TemporaryDirectory root;
  FillDeviceAt(root, 20);
  for (const RankResult& rank : RunJob(SavingJob(root, true))) {
    EXPECT_EQ(rank.status.code(), absl::StatusCode::kResourceExhausted) << rank.status;
  }
  EXPECT_EQ(FindCheckpoints(root.path())->back().step, 16);
}

// Trains in a process of its own, with a checkpoint after every step, and kills it when it has reported so many steps.
void KillAfter(const TemporaryDirectory& root, int64_t steps) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    EngineConfig job = SavingJob(root, true);
    job.checkpoint.every_steps = 1;
    job.training.steps = 100000;
    RunJob(job, {.on_step = [&](int64_t rank, const StepReport&, Trainer&) {
             if (rank == 0 && write(pipe_ends[1], "s", 1) != 1) _exit(1);
           }});
    _exit(0);
  }
  char step = 0;
  for (int64_t i = 0; i < steps; ++i) ASSERT_EQ(read(pipe_ends[0], &step, 1), 1);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST(CheckpointSaver, LeavesWholeCheckpointsWheneverItIsKilled) {
  for (const int64_t steps : {8, 9, 11, 14}) {
    const TemporaryDirectory root;
    KillAfter(root, steps);
    const std::vector<CheckpointId> found = FindCheckpoints(root.path()).value();
    ASSERT_FALSE(found.empty());
    for (const CheckpointId& id : found) {
      absl::StatusOr<CheckpointReader> reader = CheckpointReader::Open(CheckpointDirectory(root.path(), id));
      ASSERT_TRUE(reader.ok()) << reader.status();
      EXPECT_TRUE(reader->Verify().ok());
    }
    EngineConfig job = SavingJob(root, true);
    job.checkpoint.resume_from = CheckpointDirectory(root.path(), found.back());
    job.checkpoint.attempt = 2;
    job.training.steps = found.back().step + 1;
    EXPECT_TRUE(RunJob(job)[0].status.ok());
    EXPECT_FALSE(std::filesystem::exists(root.File(absl::StrCat("attempt-1/step-", found.back().step + 1, ".tmp"))))
        << "the next attempt clears away what was being written";
  }
}

}  // namespace
}  // namespace muster
