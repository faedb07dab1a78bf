// What a trainer reports, and how it ends when something is wrong.
#include "worker/engine/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/worker/engine/training_harness.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(Trainer, UsesTheBytesThatWerePlannedOnEveryRank) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    EngineConfig job = Cut(TinyJob(), {1, 5, 9}, 2);  // stages of the embedding and of the head alone
    job.layout.precision = precision;
    job.training.steps = 1;
    for (const RankResult& rank : RunJob(job)) {
      ASSERT_TRUE(rank.status.ok()) << rank.status.ToString();
      const MemoryReport& memory = rank.steps.back().memory;
      EXPECT_EQ(memory.used_bytes, memory.planned_bytes);
      EXPECT_EQ(memory.arena_bytes, memory.planned_arena_bytes);
      EXPECT_GT(memory.arena_bytes, 0);
      EXPECT_LE(memory.lower_bound_bytes, memory.arena_bytes);
    }
  }
}

TEST(Trainer, AttributesAllOfAStepsTimeToPhases) {
  for (const RankResult& rank : RunJob(Cut(TinyJob(), {4}, 2))) {
    ASSERT_TRUE(rank.status.ok()) << rank.status.ToString();
    for (const StepReport& step : rank.steps) {
      double sum = 0;
      for (const double seconds : step.phase_seconds) {
        EXPECT_GE(seconds, 0);
        sum += seconds;
      }
      EXPECT_NEAR(sum, step.seconds, 1e-9);
      EXPECT_GT(step.phase_seconds[static_cast<size_t>(Phase::kForward)], 0);
      EXPECT_GT(step.phase_seconds[static_cast<size_t>(Phase::kBackward)], 0);
    }
  }
}

TEST(Trainer, ReportsTheSameStepOnEveryRank) {
  const std::vector<RankResult> ranks = RunJob(Cut(TinyJob(), {4}, 2));
  for (const RankResult& rank : ranks) {
    ASSERT_TRUE(rank.status.ok()) << rank.status.ToString();
    ASSERT_EQ(rank.steps.size(), 20u);
    for (size_t i = 0; i < rank.steps.size(); ++i) {
      EXPECT_EQ(rank.steps[i].step, static_cast<int64_t>(i + 1));
      EXPECT_EQ(rank.steps[i].loss, ranks[0].steps[i].loss);
      EXPECT_EQ(rank.steps[i].gradient_norm, ranks[0].steps[i].gradient_norm);
      EXPECT_EQ(rank.steps[i].tokens, ranks[0].steps[i].tokens);
    }
  }
}

int64_t CountedTargets(const SampleSource& source, int64_t samples) {
  const size_t length = static_cast<size_t>(source.sequence_length());
  std::vector<int32_t> tokens(length), targets(length);
  int64_t counted = 0;
  for (int64_t i = 0; i < samples; ++i) {
    EXPECT_TRUE(source.Sample(i, {absl::MakeSpan(tokens), absl::MakeSpan(targets), {}}).ok());
    counted += std::count_if(targets.begin(), targets.end(), [](int32_t target) { return target >= 0; });
  }
  return counted;
}

TEST(Trainer, ValidatesAtTheIntervalBeforeTheFirstStepAndAtTheEnd) {
  const SyntheticSource validation(16, TinyModel().vocab);
  EngineConfig job = TinyJob();
  job.validation = {.every_steps = 8, .windows = 7, .before_first_step = true};
  const std::vector<RankResult> one = RunJob(job, {.validation = &validation});
  ASSERT_TRUE(one[0].status.ok()) << one[0].status.ToString();
  std::vector<int64_t> steps;
  for (const ValidationReport& report : one[0].validations) steps.push_back(report.step);
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 8, 16, 20}));
  // An untrained model knows nothing: the loss is the entropy of a uniform choice.
  EXPECT_NEAR(one[0].validations.front().loss, std::log(static_cast<double>(job.model.vocab)), 0.05);
  EXPECT_LT(one[0].validations.back().loss, one[0].validations.front().loss);
  EXPECT_EQ(one[0].validations.back().tokens, CountedTargets(validation, 7));
}

TEST(Trainer, ValidatesToTheSameLossHoweverTheModelIsCut) {
  const SyntheticSource validation(16, TinyModel().vocab);
  EngineConfig job = TinyJob();
  job.training.steps = 4;
  job.validation = {.every_steps = 2, .windows = 7};
  const std::vector<RankResult> whole = RunJob(Cut(job, {}, 2), {.validation = &validation});
  const std::vector<RankResult> cut = RunJob(Cut(job, {2, 5}, 2), {.validation = &validation});
  ASSERT_EQ(whole[0].validations.size(), 2u);
  for (const RankResult& rank : cut) {
    ASSERT_EQ(rank.validations.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(rank.validations[i].loss, whole[0].validations[i].loss);
      EXPECT_EQ(rank.validations[i].tokens, whole[0].validations[i].tokens);
    }
  }
  ExpectIdentical(cut, RunJob(Cut(job, {}, 2)));  // validation leaves training alone
}

// From the initial weights, with one element of one tensor spoilt.
absl::Status SpoiltWeights(const ParameterInfo& parameter, int64_t first, absl::Span<float> values,
                           const std::string& spoilt) {
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 0.01f * static_cast<float>((first + static_cast<int64_t>(i) * 7) % 11 - 5);
  }
  if (parameter.name == spoilt && first == 0) values[3] = std::numeric_limits<float>::quiet_NaN();
  return absl::OkStatus();
}

TEST(Trainer, NamesRankAndUnitOfWhatIsNotFinite) {
  struct Case {
    const char* parameter;
    const char* unit;
    const char* rank;
  };
  for (const Case& expected : {Case{"layer.2.ffn.up.weight", "unit 2.ffn", "rank 2"},
                               Case{"layer.0.attention.qkv.bias", "unit 0.attention", "rank 0"},
                               Case{"head.norm.weight", "unit head", "rank 2"}}) {
    const auto weights = [&](const ParameterInfo& parameter, int64_t first, absl::Span<float> values) {
      return SpoiltWeights(parameter, first, values, expected.parameter);
    };
    for (const RankResult& rank : RunJob(Cut(TinyJob(), {5}, 2), {.initial_weights = weights})) {
      EXPECT_EQ(rank.status.code(), absl::StatusCode::kFailedPrecondition);
      const std::string message(rank.status.message());
      EXPECT_THAT(message, HasSubstr("step 1"));
      EXPECT_THAT(message, HasSubstr(expected.unit));
      EXPECT_THAT(message, HasSubstr(expected.rank));
      EXPECT_TRUE(rank.steps.empty());
    }
  }
}

// Large activations in front of small weights: every output is finite, and the squares of one weight's gradient are
// not.
absl::Status LopsidedWeights(const ParameterInfo& parameter, int64_t first, absl::Span<float> values) {
  MUSTER_RETURN_IF_ERROR(SpoiltWeights(parameter, first, values, ""));
  float scale = 1;
  if (parameter.name == "layer.1.attention.norm.weight") scale = 1e25f;
  if (parameter.name == "layer.1.attention.qkv.weight") scale = 1e-25f;
  for (float& value : values) value *= scale;
  return absl::OkStatus();
}

TEST(Trainer, NamesTheGradientThatIsNotFinite) {
  for (const RankResult& rank : RunJob(Cut(TinyJob(), {2}, 2), {.initial_weights = LopsidedWeights})) {
    EXPECT_EQ(rank.status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(rank.status.message()),
                HasSubstr("step 1: the gradient of layer.1.attention.qkv.weight (unit 1.attention on rank 2 and its "
                          "replicas) is not finite"));
  }
}

TEST(Trainer, EndsOnEveryRankWhenOnePeerFails) {
  const std::vector<RankResult> ranks =
      RunJob(Cut(TinyJob(), {4}, 2), {.before_optimizer_step = [](int64_t rank, int64_t steps_done) {
               if (rank == 1 && steps_done == 3) return absl::AbortedError("the lease is stale");
               return absl::OkStatus();
             }});
  EXPECT_EQ(ranks[1].status.code(), absl::StatusCode::kAborted);
  for (const size_t rank : {0u, 2u, 3u}) {
    EXPECT_EQ(ranks[rank].status.code(), absl::StatusCode::kUnavailable) << ranks[rank].status.ToString();
  }
}

class FailingSource : public SyntheticSource {
 public:
  using SyntheticSource::SyntheticSource;
  absl::Status Sample(int64_t index, const SampleRows& row) const override {
    if (index >= 40) return absl::DataLossError("train.bin ends at byte 1280");
    return SyntheticSource::Sample(index, row);
  }
};

TEST(Trainer, SaysWhatTheDataSourceSaid) {
  const FailingSource source(16, TinyModel().vocab);
  const std::vector<RankResult> ranks = RunJob(TinyJob(), {.train = &source});
  EXPECT_EQ(ranks[0].status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(ranks[0].status.message()), HasSubstr("train.bin ends at byte 1280"));
  EXPECT_EQ(ranks[0].steps.size(), 5u);
}

TEST(Trainer, SaysWhenACheckpointCannotBeRead) {
  EngineConfig job = Cut(TinyJob(), {4}, 1);
  job.checkpoint.resume_from = absl::StrCat(testing::TempDir(), "/no-such-checkpoint");
  // DATA_LOSS whatever is wrong with it: the coordinator then goes back to the checkpoint before.
  for (const RankResult& rank : RunJob(job)) {
    EXPECT_EQ(rank.status.code(), absl::StatusCode::kDataLoss) << rank.status.ToString();
    EXPECT_THAT(std::string(rank.status.message()), HasSubstr("no-such-checkpoint"));
  }
}

}  // namespace
}  // namespace muster
