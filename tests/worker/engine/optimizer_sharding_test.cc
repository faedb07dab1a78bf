// Optimizer state that is spread over the replicas (ZeRO-1) takes less memory and changes nothing else: every bit of a
// run is that of the same layout without it.
#include <gtest/gtest.h>

#include "tests/worker/engine/training_harness.h"

namespace muster {
namespace {

EngineConfig Sharded(EngineConfig config) {
  config.layout.optimizer_sharding = true;
  return config;
}

void ExpectSameBits(const EngineConfig& job) {
  const std::vector<RankResult> whole = RunJob(job);
  const std::vector<RankResult> sharded = RunJob(Sharded(job));
  ExpectIdentical(sharded, whole);
}

TEST(OptimizerSharding, ChangesNoBitOverTwoAndFourReplicas) {
  ExpectSameBits(Cut(TinyJob(), {}, 2));
  ExpectSameBits(Cut(TinyJob(), {}, 4));
}

TEST(OptimizerSharding, ChangesNoBitWithATiedWeightOverTwoStages) { ExpectSameBits(Cut(TinyJob(), {5}, 2)); }

TEST(OptimizerSharding, ChangesNoBitWithMasterWeights) {
  EngineConfig job = Cut(TinyJob(), {}, 2);
  job.layout.precision = Precision::kBf16;
  ExpectSameBits(job);
  EngineConfig stages = Cut(TinyJob(), {3}, 2);
  stages.layout.precision = Precision::kBf16;
  stages.model.tied = false;
  ExpectSameBits(stages);
}

TEST(OptimizerSharding, WorksWhereThereAreMoreReplicasThanRows) {
  EngineConfig job = TinyJob();
  job.layout.accumulation_steps = 8;
  job.model.context = job.layout.sequence_length = 4;  // the position table has fewer rows than there are replicas
  job.training.steps = 3;
  ExpectSameBits(Cut(job, {}, 8));
}

TEST(OptimizerSharding, ChangesNothingOnOneReplica) { ExpectSameBits(TinyJob()); }

TEST(OptimizerSharding, HalvesTheStateOfTwoReplicas) {
  EngineConfig job = Cut(TinyJob(), {}, 2);
  job.model.vocab = 64;  // every tensor's rows are even
  job.model.hidden = 64;
  job.model.ffn = 256;
  job.model.context = 16;
  job.training.steps = 1;
  const auto state_bytes = [](const std::vector<RankResult>& results) {
    return results[0].steps[0].memory.used_bytes[static_cast<size_t>(MemoryCategory::kOptimizerState)];
  };
  const auto aligned = [](int64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; };
  int64_t whole = 0;
  int64_t half = 0;
  for (const ParameterInfo& parameter : Parameters(job.model)) {
    const int64_t bytes = parameter.elements() * 4;
    whole += 2 * aligned(bytes);  // both moments
    half += 2 * aligned(bytes / 2);
  }
  EXPECT_EQ(state_bytes(RunJob(job)), whole);
  EXPECT_EQ(state_bytes(RunJob(Sharded(job))), half);
}

}  // namespace
}  // namespace muster
