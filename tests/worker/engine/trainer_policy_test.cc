// What a run does with steps that are not as they should be: it passes them over or goes back, and its curve is then
// that of a run which never saw their samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/temporary_directory.h"
#include "tests/worker/engine/training_harness.h"
#include "worker/engine/initial_weights.h"

namespace muster {
namespace {

using Reaction = PolicyOptions::Reaction;
using ::testing::HasSubstr;

constexpr int64_t kBatch = 8;  // samples of a step of TinyJob
constexpr int64_t kSteps = 88;
constexpr int64_t kBadStep = 81;  // the loss has come to rest before
constexpr int32_t kRareToken = 60;

// Every token but kRareToken has one successor, so that the loss falls far in few steps. The samples of kBadStep have
// targets that contradict it, or the rare token among their inputs.
class SpoiltSource : public SampleSource {
 public:
  enum class Spoilt { kNothing, kTargets, kTokens };

  // Samples [first_omitted, first_omitted + omitted) do not exist: those behind move up.
  explicit SpoiltSource(Spoilt spoilt, int64_t first_omitted = 0, int64_t omitted = 0)
      : spoilt_(spoilt), first_omitted_(first_omitted), omitted_(omitted) {}

  int64_t sequence_length() const override { return 16; }
  absl::Status Sample(int64_t index, const SampleRows& row) const override {
    if (index >= first_omitted_) index += omitted_;
    const bool bad = index / kBatch == kBadStep - 1;
    int32_t token = static_cast<int32_t>(index * 37 % kRareToken);
    for (size_t i = 0; i < row.tokens.size(); ++i) {
      row.tokens[i] = token;
      token = (token * 7 + 3) % kRareToken;
      row.targets[i] = bad && spoilt_ == Spoilt::kTargets ? (token + 30) % kRareToken : token;
    }
    if (bad && spoilt_ == Spoilt::kTokens) row.tokens[3] = kRareToken;
    return absl::OkStatus();
  }

 private:
  const Spoilt spoilt_;
  const int64_t first_omitted_;
  const int64_t omitted_;
};

EngineConfig Job() {
  EngineConfig job = Cut(TinyJob(), {4}, 2);
  job.training.steps = kSteps;
  job.training.adamw.learning_rate = 1e-2;
  return job;
}

// The embedding of the rare token is not finite; nothing else refers to it.
absl::Status RareTokenSpoilt(const ParameterInfo& parameter, int64_t first, absl::Span<float> values) {
  InitialWeights(TinyModel(), 1234, parameter, first, values);
  if (parameter.name != "embedding.token.weight") return absl::OkStatus();
  const int64_t spoilt = kRareToken * TinyModel().hidden - first;
  if (spoilt >= 0 && spoilt < static_cast<int64_t>(values.size())) {
    values[static_cast<size_t>(spoilt)] = std::numeric_limits<float>::quiet_NaN();
  }
  return absl::OkStatus();
}

void ExpectLosses(const std::vector<StepReport>& steps, size_t first, const std::vector<StepReport>& expected,
                  size_t expected_first, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(steps[first + i].loss, expected[expected_first + i].loss) << "step " << steps[first + i].step;
  }
}

TEST(TrainerPolicy, ASpikeUnderRewindGivesTheCurveOfARunThatNeverSawItsSamples) {
  const TemporaryDirectory root;
  const SpoiltSource spoilt(SpoiltSource::Spoilt::kTargets);
  EngineConfig job = Job();
  job.policy = {.loss_spike = Reaction::kRewind, .rewind_steps = 7};
  job.checkpoint = {.directory = root.path(), .every_steps = 5};
  const std::vector<RankResult> before = RunJob(job, {.train = &spoilt});
  for (const RankResult& rank : before) {
    ASSERT_TRUE(rank.status.ok()) << rank.status.ToString();
    ASSERT_EQ(rank.outcome, TrainingOutcome::kRewind);
    EXPECT_EQ(rank.steps.size(), static_cast<size_t>(kBadStep - 1)) << "the step itself is not told";
    EXPECT_EQ(rank.rewind.step, kBadStep);
    EXPECT_EQ(rank.rewind.target_step, kBadStep - 8);
    EXPECT_EQ(rank.rewind.next_sample, kBadStep * kBatch);
    EXPECT_EQ(rank.rewind.type, "LOSS_SPIKE");
    EXPECT_THAT(rank.rewind.reason, HasSubstr(absl::StrCat("step ", kBadStep, ": loss ")));
  }
  constexpr int64_t kResumed = 70;  // the newest checkpoint at or before step 73
  job.checkpoint.resume_from = before[0].checkpoints[kResumed / 5 - 1].directory;
  job.checkpoint.next_sample = before[0].rewind.next_sample;
  job.checkpoint.attempt = 2;
  const std::vector<RankResult> behind = RunJob(job, {.train = &spoilt});
  ASSERT_TRUE(behind[0].status.ok()) << behind[0].status.ToString();
  ASSERT_EQ(behind[0].outcome, TrainingOutcome::kCompleted);

  const SpoiltSource without(SpoiltSource::Spoilt::kTargets, kResumed * kBatch, (kBadStep - kResumed) * kBatch);
  const std::vector<RankResult> never = RunJob(Job(), {.train = &without});
  ASSERT_TRUE(never[0].status.ok()) << never[0].status.ToString();
  ExpectLosses(before[0].steps, 0, never[0].steps, 0, kResumed);
  ASSERT_EQ(behind[0].steps.size(), static_cast<size_t>(kSteps - kResumed));
  ExpectLosses(behind[0].steps, 0, never[0].steps, kResumed, kSteps - kResumed);
  EXPECT_EQ(MergedWeights(behind), MergedWeights(never));
}

TEST(TrainerPolicy, ASpikeUnderSkipLeavesTheWeightsAsIfItsSamplesHadNotBeen) {
  const SpoiltSource spoilt(SpoiltSource::Spoilt::kTargets);
  EngineConfig job = Job();
  job.policy.loss_spike = Reaction::kSkip;
  const std::vector<RankResult> ranks = RunJob(job, {.train = &spoilt});
  ASSERT_TRUE(ranks[0].status.ok()) << ranks[0].status.ToString();
  ASSERT_EQ(ranks[0].steps.size(), static_cast<size_t>(kSteps));
  for (const StepReport& step : ranks[0].steps) {
    EXPECT_EQ(step.skipped, step.step == kBadStep) << step.step;
    EXPECT_EQ(step.skipped_steps, step.step >= kBadStep ? 1 : 0);
  }
  for (const RankResult& rank : ranks) {
    ASSERT_EQ(rank.events.size(), 1u);
    EXPECT_EQ(rank.events[0].type, "LOSS_SPIKE");
    EXPECT_THAT(rank.events[0].message, HasSubstr("its samples are skipped"));
    EXPECT_EQ(rank.events[0].details.at("step"), absl::StrCat(kBadStep));
  }
  const SpoiltSource without(SpoiltSource::Spoilt::kTargets, (kBadStep - 1) * kBatch, kBatch);
  const std::vector<RankResult> never = RunJob(Job(), {.train = &without});
  ExpectLosses(ranks[0].steps, 0, never[0].steps, 0, kBadStep - 1);
  ExpectLosses(ranks[0].steps, kBadStep, never[0].steps, kBadStep - 1, kSteps - kBadStep);
}

TEST(TrainerPolicy, ARunThatIgnoresSpikesTrainsOnThem) {
  const SpoiltSource spoilt(SpoiltSource::Spoilt::kTargets);
  const std::vector<RankResult> ranks = RunJob(Job(), {.train = &spoilt});
  ASSERT_TRUE(ranks[0].status.ok()) << ranks[0].status.ToString();
  EXPECT_GT(ranks[0].steps[kBadStep - 1].loss, 1.5 * ranks[0].steps[kBadStep - 2].loss) << "it is a spike";
  EXPECT_TRUE(ranks[0].events.empty());
  EXPECT_EQ(ranks[0].steps.back().skipped_steps, 0);
}

TEST(TrainerPolicy, WhatIsNotFiniteIsSkippedWithRankAndUnitNamed) {
  const SpoiltSource spoilt(SpoiltSource::Spoilt::kTokens);
  EngineConfig job = Job();
  job.model.tied = false;
  job.policy.non_finite = Reaction::kSkip;
  const std::vector<RankResult> ranks = RunJob(job, {.train = &spoilt, .initial_weights = RareTokenSpoilt});
  ASSERT_TRUE(ranks[0].status.ok()) << ranks[0].status.ToString();
  ASSERT_EQ(ranks[0].events.size(), 1u);
  EXPECT_EQ(ranks[0].events[0].type, "NON_FINITE");
  EXPECT_THAT(ranks[0].events[0].message,
              HasSubstr(absl::StrCat("step ", kBadStep, ": the output of unit embedding on rank 0 is not finite")));
  EXPECT_TRUE(ranks[0].steps[kBadStep - 1].skipped);
  const SpoiltSource without(SpoiltSource::Spoilt::kTokens, (kBadStep - 1) * kBatch, kBatch);
  const std::vector<RankResult> never = RunJob(job, {.train = &without, .initial_weights = RareTokenSpoilt});
  ExpectLosses(ranks[0].steps, kBadStep, never[0].steps, kBadStep - 1, kSteps - kBadStep);
}

TEST(TrainerPolicy, WhatIsNotFiniteIsARewindWhereThePolicyWantsIt) {
  const SpoiltSource spoilt(SpoiltSource::Spoilt::kTokens);
  EngineConfig job = Job();
  job.model.tied = false;
  job.policy.non_finite = Reaction::kRewind;
  for (const RankResult& rank : RunJob(job, {.train = &spoilt, .initial_weights = RareTokenSpoilt})) {
    ASSERT_EQ(rank.outcome, TrainingOutcome::kRewind) << rank.status.ToString();
    EXPECT_EQ(rank.rewind.type, "NON_FINITE");
    EXPECT_EQ(rank.rewind.target_step, 0) << "100 steps before are before the beginning";
    EXPECT_THAT(rank.rewind.reason, HasSubstr("unit embedding on rank 0"));
  }
}

TEST(TrainerPolicy, AResumedRunRemembersTheLossesThatMakeASpike) {
  const TemporaryDirectory root;
  const SpoiltSource spoilt(SpoiltSource::Spoilt::kTargets);
  EngineConfig job = Job();
  job.policy.loss_spike = Reaction::kSkip;
  job.checkpoint = {.directory = root.path(), .every_steps = kBadStep - 1};
  const std::vector<RankResult> whole = RunJob(job, {.train = &spoilt});
  job.checkpoint.resume_from = whole[0].checkpoints[0].directory;
  job.checkpoint.attempt = 2;
  const std::vector<RankResult> resumed = RunJob(job, {.train = &spoilt});
  ASSERT_TRUE(resumed[0].status.ok()) << resumed[0].status.ToString();
  EXPECT_TRUE(resumed[0].steps[0].skipped);
  ExpectLosses(resumed[0].steps, 0, whole[0].steps, kBadStep - 1, kSteps - kBadStep + 1);
  EXPECT_EQ(MergedWeights(resumed), MergedWeights(whole));
}

}  // namespace
}  // namespace muster
