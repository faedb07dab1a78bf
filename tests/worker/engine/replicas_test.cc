// One global batch gives one result, however it is shared between replicas and micro-batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/worker/engine/training_harness.h"

namespace muster {
namespace {

constexpr double kTolerance = 1e-5;

void ExpectClose(const std::vector<RankResult>& a, const std::vector<RankResult>& b) {
  const std::vector<double> losses_a = Losses(a);
  const std::vector<double> losses_b = Losses(b);
  ASSERT_EQ(losses_a.size(), losses_b.size());
  for (size_t i = 0; i < losses_a.size(); ++i) {
    EXPECT_LE(std::abs(losses_a[i] - losses_b[i]), kTolerance * losses_b[i]) << "step " << i + 1;
    const double norm = b[0].steps[i].gradient_norm;
    EXPECT_LE(std::abs(a[0].steps[i].gradient_norm - norm), kTolerance * norm) << "step " << i + 1;
    EXPECT_EQ(a[0].steps[i].tokens, b[0].steps[i].tokens) << "step " << i + 1;
  }
}

TEST(Replicas, OneTwoAndFourAgree) {
  const EngineConfig job = TinyJob();
  const std::vector<RankResult> one = RunJob(job);
  ExpectClose(RunJob(Cut(job, {}, 2)), one);
  ExpectClose(RunJob(Cut(job, {}, 4)), one);
}

TEST(Replicas, HoldTheSameWeights) {
  // MergedWeights fails the test when two replicas differ.
  const WeightMap weights = MergedWeights(RunJob(Cut(TinyJob(), {5}, 4)));
  EXPECT_EQ(weights.size(), Parameters(TinyModel()).size());
}

TEST(Accumulation, OfFourMicroBatchesEqualsOneOfFourTimesTheSize) {
  const EngineConfig job = TinyJob();  // samples count 16, 15, 14, 13 targets in turn
  EngineConfig once = job;
  once.layout.micro_batch *= once.layout.accumulation_steps;
  once.layout.accumulation_steps = 1;
  const std::vector<RankResult> accumulated = RunJob(job);
  ExpectClose(accumulated, RunJob(once));
  EXPECT_LT(accumulated[0].steps[0].tokens, job.layout.global_batch() * job.layout.sequence_length)
      << "some targets were to be ignored";
}

// All of one micro-batch's targets ignored: its share of the mean is nothing, not a division by zero.
class LopsidedSource : public SyntheticSource {
 public:
  using SyntheticSource::SyntheticSource;
  absl::Status Sample(int64_t index, const SampleRows& row) const override {
    const absl::Status status = SyntheticSource::Sample(index, row);
    if (index % 8 < 2) std::fill(row.targets.begin(), row.targets.end(), kIgnoredSampleTarget);
    return status;
  }
};

TEST(Accumulation, WeighsMicroBatchesByTheirCountedTargets) {
  const EngineConfig job = TinyJob();
  const LopsidedSource source(job.layout.sequence_length, job.model.vocab);
  EngineConfig once = job;
  once.layout.micro_batch *= once.layout.accumulation_steps;
  once.layout.accumulation_steps = 1;
  ExpectClose(RunJob(job, {.train = &source}), RunJob(once, {.train = &source}));
  ExpectClose(RunJob(Cut(job, {}, 4), {.train = &source}), RunJob(once, {.train = &source}));
}

}  // namespace
}  // namespace muster
