#include "common/spec/validate.h"

#include <cmath>

#include "common/spec/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/spec/good_job.h"

namespace muster {
namespace {

using testing::HasSubstr;

v1::JobSpec GoodSpec() { return ParseJobFile("good.yaml", GoodJob())->spec; }

TEST(ValidateTest, AGoodSpecHasNoProblems) { EXPECT_THAT(ValidateSpec(GoodSpec()), testing::IsEmpty()); }

TEST(ValidateTest, AnEmptySpecNamesItsSectionsOnce) {
  std::vector<std::string> fields;
  for (const Problem& problem : ValidateSpec(v1::JobSpec())) {
    EXPECT_EQ(problem.code, "MISSING_FIELD");
    fields.push_back(problem.field);
  }
  EXPECT_THAT(fields, testing::ElementsAre("name", "model", "data", "training", "resources"));
}

TEST(ValidateTest, WhatNoFileCanSayIsRefusedInAMessage) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_training()->mutable_optimizer()->mutable_adamw()->set_lr(std::nan(""));
  spec.mutable_training()->set_micro_batch(-1);
  spec.mutable_model()->set_layers(INT64_MAX);
  spec.mutable_data()->mutable_train(0)->set_path(std::string("a\0b", 3));
  std::vector<std::string> fields;
  for (const Problem& problem : ValidateSpec(spec)) fields.push_back(problem.field);
  EXPECT_THAT(fields, testing::ElementsAre("model.layers", "data.train[0].path", "training.micro_batch",
                                           "training.optimizer.adamw.lr"));
}

TEST(ValidateTest, AFieldIsReportedOnce) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_training()->set_precision("fp8");
  EXPECT_EQ(ValidateSpec(spec).size(), 1u);
}

TEST(ValidateTest, EveryLaterFeatureIsRefusedByName) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_model()->add_frozen("embedding.*");
  spec.mutable_parallelism()->set_context(2);
  spec.mutable_parallelism()->set_expert(2);
  spec.mutable_parallelism()->set_rebalance("auto");
  spec.mutable_policy()->set_queue("research");
  spec.mutable_policy()->mutable_start_deadline()->set_seconds(60);
  const std::vector<Problem> problems = ValidateSpec(spec);
  EXPECT_EQ(problems.size(), 6u);
  for (const Problem& problem : problems) {
    EXPECT_EQ(problem.code, "NOT_SUPPORTED_YET") << problem.field;
    EXPECT_THAT(problem.message, HasSubstr("not supported yet by this version")) << problem.field;
  }
}

TEST(ValidateTest, ScheduleAndInterleaveMustAgree) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_parallelism()->set_interleave(2);
  EXPECT_THAT(ValidateSpec(spec), testing::IsEmpty());
  spec.mutable_parallelism()->set_schedule("1f1b");
  std::vector<Problem> problems = ValidateSpec(spec);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].field, "parallelism.interleave");
  EXPECT_EQ(problems[0].message, "2 chunks on each rank, but parallelism.schedule is 1f1b");

  spec.mutable_parallelism()->set_schedule("interleaved");
  EXPECT_THAT(ValidateSpec(spec), testing::IsEmpty());
  spec.mutable_parallelism()->set_interleave(1);
  problems = ValidateSpec(spec);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].suggestion, "use 2 or more, or schedule 1f1b");
}

TEST(ValidateTest, TensorRanksAlwaysShareTheRows) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_parallelism()->set_tensor(2);
  spec.mutable_parallelism()->set_data(1);
  spec.mutable_parallelism()->set_sequence_parallel(false);
  const std::vector<Problem> problems = ValidateSpec(spec);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems[0].field, "parallelism.sequence_parallel");
  EXPECT_THAT(problems[0].message, HasSubstr("it is always on"));
}

Problem OnlyProblem(const v1::JobSpec& spec) {
  const std::vector<Problem> problems = ValidateSpec(spec);
  EXPECT_EQ(problems.size(), 1u);
  return problems.empty() ? Problem{} : problems[0];
}

TEST(ValidateTest, AStableScheduleNeedsRoomForWarmUpAndDecay) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_training()->set_steps(100);
  v1::LearningRateScheduleSpec* schedule = spec.mutable_training()->mutable_schedule();
  schedule->set_decay("wsd");
  schedule->set_warmup_steps(90);
  EXPECT_TRUE(ValidateSpec(spec).empty()) << "a tenth is left for the decay";
  schedule->set_decay_steps(11);
  EXPECT_EQ(OnlyProblem(spec).field, "training.schedule.decay_steps");
  EXPECT_THAT(OnlyProblem(spec).message, HasSubstr("11 steps of decay and 90 of warm-up are more than"));
  schedule->set_decay("linear");
  EXPECT_THAT(OnlyProblem(spec).message, HasSubstr("is for wsd, the decay is linear"));
}

TEST(ValidateTest, ARewindNeedsCheckpointsToGoBackTo) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_checkpoint()->set_every_steps(0);
  spec.mutable_policy()->set_loss_spike("skip");
  EXPECT_TRUE(ValidateSpec(spec).empty());
  spec.mutable_policy()->set_non_finite("rewind");
  EXPECT_EQ(OnlyProblem(spec).field, "checkpoint.every_steps");
  spec.mutable_checkpoint()->set_every_steps(50);
  EXPECT_TRUE(ValidateSpec(spec).empty());
}

TEST(ValidateTest, ViolationsUseThePathsOfTheSchema) {
  const auto violations =
      ToFieldViolations({{"RANK_OVER_MEMORY", "resources.memory_per_rank", "too little", "give more"},
                         {"OUT_OF_RANGE", "data.train[2].path", "bad", ""},
                         {"OUT_OF_RANGE", "labels.team", "bad", ""}},
                        "spec");
  ASSERT_EQ(violations.size(), 3u);
  EXPECT_EQ(violations[0].field(), "spec.resources.memory_per_rank_bytes");
  EXPECT_EQ(violations[0].description(), "too little; give more");
  EXPECT_EQ(violations[1].field(), "spec.data.train[2].path");
  EXPECT_EQ(violations[2].field(), "spec.labels.team");
}

}  // namespace
}  // namespace muster
