// What the layout of a layer may not change about a run: recomputation nothing at all, tensor parallelism only
// rounding.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/worker/engine/training_harness.h"

namespace muster {
namespace {

// Grouped queries, a head of its own, and tokens that two ranks cannot share evenly.
EngineConfig TinyLlamaJob() {
  EngineConfig config = TinyJob();
  config.model.family = ModelFamily::kLlama;
  config.model.kv_heads = 2;
  config.model.ffn = 48;
  config.model.tied = false;
  config.model.qkv_bias = false;
  config.training.steps = 6;
  return config;
}

EngineConfig TinyGpt2Job() {
  EngineConfig config = TinyJob();
  config.training.steps = 6;
  return config;
}

class ModelLayouts : public testing::TestWithParam<EngineConfig> {};

INSTANTIATE_TEST_SUITE_P(Families, ModelLayouts, testing::Values(TinyGpt2Job(), TinyLlamaJob()),
                         [](const testing::TestParamInfo<EngineConfig>& info) {
                           return info.param.model.family == ModelFamily::kGpt2 ? "Gpt2" : "Llama";
                         });

TEST_P(ModelLayouts, RecomputingOnTwoStagesChangesNoBit) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    EngineConfig config = Cut(GetParam(), {4}, 1);
    config.layout.precision = precision;
    const std::vector<RankResult> kept = RunJob(config);
    for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
      config.layout.recompute = recompute;
      ExpectIdentical(RunJob(config), kept);
    }
  }
}

TEST_P(ModelLayouts, RecomputingTakesLessMemory) {
  EngineConfig config = GetParam();
  config.training.steps = 1;
  std::vector<int64_t> arena_bytes;
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    config.layout.recompute = recompute;
    const std::vector<RankResult> results = RunJob(config);
    ASSERT_TRUE(results[0].status.ok()) << results[0].status.ToString();
    const MemoryReport& memory = results[0].steps[0].memory;
    EXPECT_EQ(memory.used_bytes, memory.planned_bytes);
    EXPECT_EQ(memory.arena_bytes, memory.planned_arena_bytes);
    arena_bytes.push_back(memory.arena_bytes);
  }
  EXPECT_LT(arena_bytes[1], arena_bytes[0]);
  EXPECT_LT(arena_bytes[2], arena_bytes[1]);
}

TEST_P(ModelLayouts, TensorRanksTrainAsOneRankDoes) {
  const std::vector<RankResult> one = RunJob(GetParam());
  const WeightMap expected = MergedWeights(one);
  for (const int64_t tensor : {2, 4}) {
    EngineConfig config = tensor == 2 ? Cut(GetParam(), {3}, 2) : GetParam();
    config.layout.tensor = tensor;
    const std::vector<RankResult> results = RunJob(config);
    const WeightMap weights = MergedWeights(results);
    ASSERT_EQ(results[0].steps.size(), one[0].steps.size());
    for (size_t i = 0; i < one[0].steps.size(); ++i) {
      const StepReport& step = one[0].steps[i];
      EXPECT_NEAR(results[0].steps[i].loss, step.loss, 1e-5 * step.loss) << tensor << " ranks, step " << i + 1;
      EXPECT_NEAR(results[0].steps[i].gradient_norm, step.gradient_norm, 1e-5 * step.gradient_norm)
          << tensor << " ranks, step " << i + 1;
      EXPECT_EQ(results[0].steps[i].tokens, step.tokens);
    }
    double error = 0;
    double norm = 0;
    for (const auto& [name, values] : expected) {
      const std::vector<float>& actual = weights.at(name);
      for (size_t i = 0; i < values.size(); ++i) {
        error += std::pow(static_cast<double>(actual[i]) - static_cast<double>(values[i]), 2);
        norm += std::pow(static_cast<double>(values[i]), 2);
      }
    }
    EXPECT_LE(std::sqrt(error / norm), 1e-4) << tensor << " ranks";
    for (const RankResult& result : results) {
      EXPECT_EQ(result.steps[0].memory.used_bytes, result.steps[0].memory.planned_bytes);
    }
  }
}

}  // namespace
}  // namespace muster
