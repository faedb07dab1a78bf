// Training in fp16: overflows cost a few steps and never the run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/status_macros.h"
#include "tests/support/temporary_directory.h"
#include "tests/worker/engine/training_harness.h"
#include "worker/engine/initial_weights.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSteps = 240;

EngineConfig Job(Precision precision) {
  EngineConfig job = Cut(TinyJob(), {4}, 2);
  job.layout.precision = precision;
  job.training.steps = kSteps;
  return job;
}

// A job whose embeddings fp16 cannot hold, though norms make the same of them: no loss scale helps, as it is the
// forward pass that overflows.
EngineConfig JobBeyondFp16(Precision precision) {
  EngineConfig job = Job(precision);
  job.model.tied = false;  // the head's weights are ordinary
  return job;
}

absl::Status WeightsBeyondFp16(const ParameterInfo& parameter, int64_t first, absl::Span<float> values) {
  InitialWeights(TinyModel(), 1234, parameter, first, values);
  const bool large = absl::StartsWith(parameter.name, "embedding.");
  for (float& value : values) value *= large ? 4194304 : 1;
  return absl::OkStatus();
}

double FinalLoss(const std::vector<RankResult>& ranks) {
  EXPECT_TRUE(ranks[0].status.ok()) << ranks[0].status.ToString();
  const std::vector<StepReport>& steps = ranks[0].steps;
  EXPECT_EQ(steps.size(), static_cast<size_t>(kSteps));
  double sum = 0;  // of the last twenty, as one batch's loss is noisy
  for (size_t i = steps.size() - 20; i < steps.size(); ++i) sum += steps[i].loss;
  return sum / 20;
}

TEST(Fp16, TrainsLikeBf16AndScalesTheLoss) {
  const std::vector<RankResult> half = RunJob(Job(Precision::kFp16));
  EXPECT_NEAR(FinalLoss(half) / FinalLoss(RunJob(Job(Precision::kBf16))), 1, 0.01);
  EXPECT_EQ(half[0].steps[0].loss_scale, 65536);
  EXPECT_EQ(half[0].steps.back().skipped_steps, 0);
  const std::vector<RankResult> whole = RunJob(Job(Precision::kFp32));
  EXPECT_NEAR(half[0].steps[0].gradient_norm / whole[0].steps[0].gradient_norm, 1, 0.01) << "without the scale";
}

// A single target counts in each of the first steps, as when all the rest of a batch is prompt: its gradient is not
// divided by hundreds, and times 2^16 it overflows.
class SparseAtFirst : public SyntheticSource {
 public:
  static constexpr int64_t kSparseSteps = 6;

  SparseAtFirst() : SyntheticSource(16, TinyModel().vocab) {}
  absl::Status Sample(int64_t index, const SampleRows& row) const override {
    MUSTER_RETURN_IF_ERROR(SyntheticSource::Sample(index, row));
    if (index >= kSparseSteps * 8) return absl::OkStatus();
    std::fill(row.targets.begin(), row.targets.end(), kIgnoredSampleTarget);
    if (index % 8 == 0) row.targets[3] = row.tokens[4];
    return absl::OkStatus();
  }
};

TEST(Fp16, APlantedOverflowIsSkippedRescaledAndRecoveredFrom) {
  const SparseAtFirst sparse;
  const std::vector<RankResult> ranks = RunJob(Job(Precision::kFp16), {.train = &sparse});
  EXPECT_NEAR(FinalLoss(ranks) / FinalLoss(RunJob(Job(Precision::kBf16), {.train = &sparse})), 1, 0.01);
  const std::vector<StepReport>& steps = ranks[0].steps;
  EXPECT_TRUE(steps[0].skipped);
  EXPECT_TRUE(steps[1].skipped);
  EXPECT_EQ(steps[1].loss_scale, 65536) << "one overflow is forgiven";
  EXPECT_EQ(steps[2].loss_scale, 32768);
  const int64_t skipped = std::count_if(steps.begin(), steps.end(), [](const StepReport& s) { return s.skipped; });
  EXPECT_LT(skipped, SparseAtFirst::kSparseSteps) << "a scale was found with which even these can be trained on";
  EXPECT_FALSE(steps[SparseAtFirst::kSparseSteps - 1].skipped);
  EXPECT_EQ(steps.back().skipped_steps, skipped);
  EXPECT_GT(steps.back().loss_scale, 1);
  EXPECT_TRUE(ranks[0].events.empty()) << "it is how the scale is found";
}

TEST(Fp16, AtTheFloorItFallsBackToBf16InPlaceAndTellsOfIt) {
  const RunOptions options{.initial_weights = WeightsBeyondFp16};
  const std::vector<RankResult> ranks = RunJob(JobBeyondFp16(Precision::kFp16), options);
  const double bf16 = FinalLoss(RunJob(JobBeyondFp16(Precision::kBf16), options));
  EXPECT_NEAR(FinalLoss(ranks) / bf16, 1, 0.01);
  const std::vector<StepReport>& steps = ranks[0].steps;
  EXPECT_EQ(steps[16].loss_scale, 2);
  EXPECT_EQ(steps[17].loss_scale, 1);
  EXPECT_TRUE(steps[17].skipped);
  EXPECT_FALSE(steps[18].skipped);
  EXPECT_EQ(steps.back().skipped_steps, 18);
  for (const RankResult& rank : ranks) {
    ASSERT_EQ(rank.events.size(), 1u);
    EXPECT_EQ(rank.events[0].type, "FP16_FELL_BACK");
    EXPECT_THAT(rank.events[0].message, HasSubstr("step 18: "));
    EXPECT_EQ(rank.steps.back().memory.used_bytes, rank.steps.back().memory.planned_bytes);
  }
}

TEST(Fp16, WhatItDoesBehindTheFallbackIsBf16BitForBit) {
  EngineConfig job = JobBeyondFp16(Precision::kFp16);
  job.training.steps = 60;
  const std::vector<RankResult> fell_back = RunJob(job, {.initial_weights = WeightsBeyondFp16});
  ASSERT_TRUE(fell_back[0].status.ok()) << fell_back[0].status.ToString();
  // The same updates on the samples behind those that were skipped.
  job.layout.precision = Precision::kBf16;
  job.checkpoint.next_sample = 18 * job.layout.global_batch();
  const std::vector<RankResult> bf16 = RunJob(job, {.initial_weights = WeightsBeyondFp16});
  for (size_t i = 18; i < fell_back[0].steps.size(); ++i) {
    EXPECT_EQ(fell_back[0].steps[i].loss, bf16[0].steps[i - 18].loss) << i;
  }
}

TEST(Fp16, AResumedRunGoesOnWithItsScaleOrItsFallback) {
  for (const bool falls_back : {false, true}) {
    const TemporaryDirectory root;
    const SparseAtFirst sparse;
    EngineConfig job = falls_back ? JobBeyondFp16(Precision::kFp16) : Job(Precision::kFp16);
    job.training.steps = 40;
    job.checkpoint = {.directory = root.path(), .every_steps = 25};
    RunOptions options{.train = &sparse};
    if (falls_back) options.initial_weights = WeightsBeyondFp16;
    const std::vector<RankResult> whole = RunJob(job, options);
    ASSERT_TRUE(whole[0].status.ok()) << whole[0].status.ToString();
    EXPECT_EQ(whole[0].events.size(), falls_back ? 1u : 0u);
    EXPECT_GT(whole[0].steps.back().skipped_steps, 0);
    job.checkpoint.resume_from = whole[0].checkpoints[0].directory;
    job.checkpoint.attempt = 2;
    const std::vector<RankResult> resumed = RunJob(job, options);
    ASSERT_TRUE(resumed[0].status.ok()) << resumed[0].status.ToString();
    for (size_t i = 0; i < resumed[0].steps.size(); ++i) {
      EXPECT_EQ(resumed[0].steps[i].loss, whole[0].steps[i + 25].loss);
      EXPECT_EQ(resumed[0].steps[i].loss_scale, whole[0].steps[i + 25].loss_scale);
      EXPECT_EQ(resumed[0].steps[i].skipped_steps, whole[0].steps[i + 25].skipped_steps);
    }
    EXPECT_EQ(MergedWeights(resumed), MergedWeights(whole));
  }
}

}  // namespace
}  // namespace muster
