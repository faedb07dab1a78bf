#include "worker/engine/engine_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/worker/engine/training_harness.h"

namespace muster {
namespace {

absl::Status Changed(const std::function<void(EngineConfig&)>& change) {
  EngineConfig config = TinyJob();
  change(config);
  return CheckEngineConfig(config);
}

TEST(EngineConfig, TheTinyJobIsFine) { EXPECT_TRUE(CheckEngineConfig(TinyJob()).ok()); }

TEST(EngineConfig, NamesTheFieldThatIsWrong) {
  struct Case {
    std::function<void(EngineConfig&)> change;
    const char* field;
  };
  const Case cases[] = {
      {[](EngineConfig& c) { c.model.heads = 5; }, "model.heads"},
      {[](EngineConfig& c) { c.layout.sequence_length = 99; }, "sequence_length"},
      {[](EngineConfig& c) { c.layout.micro_batch = 0; }, "global_batch"},
      {[](EngineConfig& c) { c.rank = 1; }, "rank 1 of 1"},
      {[](EngineConfig& c) { c.training.steps = 0; }, "training.steps"},
      {[](EngineConfig& c) { c.training.adamw.learning_rate = 0; }, "adamw.lr"},
      {[](EngineConfig& c) { c.training.adamw.beta1 = 1; }, "adamw.beta1"},
      {[](EngineConfig& c) { c.training.adamw.beta2 = -0.1; }, "adamw.beta2"},
      {[](EngineConfig& c) { c.training.clip_grad_norm = -1; }, "clip_grad_norm"},
      {[](EngineConfig& c) { c.training.schedule.min_lr_ratio = 2; }, "min_lr_ratio"},
      {[](EngineConfig& c) { c.validation.every_steps = 5; }, "validation.windows"},
      {[](EngineConfig& c) { c.checkpoint.every_steps = 5; }, "checkpoint.directory"},
      {[](EngineConfig& c) {
         c.stages = {{0, 5}};
       },
       "the stages end at unit 5"},
      {[](EngineConfig& c) {
         c.stages = {{0, 5}, {5, 10}};
       },
       "2 stages are given"},
      {[](EngineConfig& c) {
         c.stages = {{1, 10}};
       },
       "stage 0 is units 1 to 10"},
  };
  for (const Case& expected : cases) {
    const absl::Status status = Changed(expected.change);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << expected.field;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(expected.field));
  }
}

}  // namespace
}  // namespace muster
