// Initial weights that are said to compute something are held to it, at any cut of the model.
#include "worker/engine/self_check.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/golden_logits.h"
#include "tests/support/tiny_checkpoint.h"
#include "tests/worker/engine/training_harness.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// What transformers computes of the model, as a self-check.
LogitsSelfCheck CheckOf(const GoldenModel& golden) {
  LogitsSelfCheck check{.computed_by = "transformers", .tokens = golden.tokens};
  for (size_t i = 0; i + 1 < golden.tokens.size(); ++i) {
    double sum = 0;
    for (const float logit : golden.logits[i]) sum += std::exp(static_cast<double>(logit));
    check.log_probabilities.push_back(golden.logits[i][static_cast<size_t>(golden.tokens[i + 1])] - std::log(sum));
  }
  return check;
}

GoldenModel TinyModelOfTransformers() { return GoldenModels().front(); }

// One step from TinyWeights.
EngineConfig JobOf(const ModelShape& shape) {
  EngineConfig config = TinyJob();
  config.model = shape;
  config.stages = {{0, shape.units()}};
  config.layout.sequence_length = shape.context;
  config.training.steps = 1;
  return config;
}

absl::Status FirstError(const std::vector<RankResult>& results) {
  for (const RankResult& result : results) {
    if (!result.status.ok()) return result.status;
  }
  return absl::OkStatus();
}

class SelfCheckTest : public ::testing::Test {
 protected:
  absl::Status Run(const EngineConfig& config) {
    const SyntheticSource train(config.layout.sequence_length, config.model.vocab);
    const std::vector<RankResult> results =
        RunJob(config, {.train = &train, .initial_weights = TinyWeights, .self_check = &check_});
    for (const RankResult& result : results) {
      EXPECT_EQ(result.status.code(), results[0].status.code()) << "all ranks end alike";
    }
    return FirstError(results);
  }

  const GoldenModel golden_ = TinyModelOfTransformers();
  LogitsSelfCheck check_ = CheckOf(golden_);
  const EngineConfig job_ = JobOf(golden_.shape);
};

TEST_F(SelfCheckTest, WeightsThatComputeWhatTransformersComputesAreTaken) {
  EXPECT_TRUE(Run(job_).ok()) << Run(job_);
  EXPECT_TRUE(Run(Cut(job_, {3}, 2)).ok()) << "two stages of two replicas";
  EngineConfig narrow = job_;
  narrow.layout.precision = Precision::kBf16;
  EXPECT_TRUE(Run(narrow).ok()) << Run(narrow);
}

TEST_F(SelfCheckTest, AShorterTrainingSequenceChecksWhatFits) {
  EngineConfig config = job_;
  config.layout.sequence_length = 4;
  EXPECT_TRUE(Run(config).ok());
  check_.log_probabilities[9] += 1;  // beyond the sequence
  EXPECT_TRUE(Run(config).ok());
  check_.log_probabilities[3] += 1;
  EXPECT_FALSE(Run(config).ok());
}

TEST_F(SelfCheckTest, WeightsThatComputeSomethingElseAreRefusedOnEveryRank) {
  check_.log_probabilities[5] += 2e-4;
  for (const EngineConfig& config : {job_, Cut(job_, {3}, 2)}) {
    const absl::Status status = Run(config);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("at position 6 has a log-probability of "));
    EXPECT_THAT(std::string(status.message()), HasSubstr("as transformers computed it"));
  }
}

TEST_F(SelfCheckTest, ALogitThatIsNoNumberIsRefused) {
  check_.log_probabilities[0] = std::nan("");
  EXPECT_FALSE(Run(job_).ok());
}

}  // namespace
}  // namespace muster
