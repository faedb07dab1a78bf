#include "worker/engine/fingerprint.h"

#include <gtest/gtest.h>

#include "tests/worker/engine/training_harness.h"

namespace muster {
namespace {

TEST(Fingerprint, NamesEveryPrecision) {
  EngineConfig job = TinyJob();
  for (const auto& [precision, name] : {std::pair(Precision::kFp32, "fp32"), std::pair(Precision::kBf16, "bf16"),
                                        std::pair(Precision::kFp16, "fp16")}) {
    job.layout.precision = precision;
    EXPECT_EQ(Fingerprint(job).at("precision"), name);
  }
}

TEST(Fingerprint, IsThatOfEveryCutOfThePipelineAndOfAShardedOptimizer) {
  const EngineConfig job = Cut(TinyJob(), {}, 2);
  EngineConfig other = Cut(TinyJob(), {5}, 2);
  other.layout.optimizer_sharding = true;
  EXPECT_EQ(Fingerprint(other), Fingerprint(job));
  EXPECT_NE(Fingerprint(Cut(TinyJob(), {}, 4)), Fingerprint(job));
}

}  // namespace
}  // namespace muster
