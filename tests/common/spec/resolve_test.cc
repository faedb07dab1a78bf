#include "common/spec/resolve.h"

#include "common/spec/job_file.h"
#include "common/spec/plan_proto.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/common/spec/good_job.h"

namespace muster {
namespace {

using google::protobuf::util::MessageDifferencer;

constexpr int64_t kMiB = int64_t{1} << 20;

v1::JobSpec SpecOf(const std::string& text) {
  const auto file = ParseJobFile("job.yaml", text);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? file->spec : v1::JobSpec();
}

TEST(ResolveTest, EveryAutoAndDefaultIsFilled) {
  std::string text = JobWith("micro_batch: 2", "micro_batch: auto");
  text.replace(text.find("data: 2, "), 9, "data: auto, ");
  const ResolvedJob job = ResolveSpec(SpecOf(text), {0, "job-7"});
  ASSERT_TRUE(job.plan.feasible);
  EXPECT_EQ(job.spec.parallelism().data(), 2);
  EXPECT_EQ(job.spec.training().micro_batch(), 4);  // the largest that leaves both stages a micro-batch
  EXPECT_EQ(job.spec.parallelism().cuts_size(), 1);
  EXPECT_EQ(job.spec.model().ffn(), 256);
  EXPECT_TRUE(job.spec.model().tied());
  EXPECT_EQ(job.spec.checkpoint().directory(), "job-7");
  EXPECT_EQ(job.spec.policy().max_restarts(), 5);
}

TEST(ResolveTest, ResolvingAgainChangesNothing) {
  const ResolvedJob once = ResolveSpec(SpecOf(JobWith("micro_batch: 2", "micro_batch: auto")), {0, "job-7"});
  const ResolvedJob twice = ResolveSpec(once.spec, {100 * kMiB, "job-8"});
  EXPECT_TRUE(MessageDifferencer::Equals(once.spec, twice.spec)) << once.spec.DebugString() << twice.spec.DebugString();
  EXPECT_EQ(once.plan.ranks[0].total_bytes, twice.plan.ranks[0].total_bytes);
}

TEST(ResolveTest, AnInterleavedPipelineIsCutIntoItsChunksAndReachesTheEngine) {
  const std::string text = JobWith("pipeline: 2}", "pipeline: 2, schedule: interleaved, zero_stage: 1}");
  const ResolvedJob job = ResolveSpec(SpecOf(text), {0, "job-7"});
  ASSERT_TRUE(job.plan.feasible);
  EXPECT_EQ(job.spec.parallelism().interleave(), 2);
  EXPECT_EQ(job.spec.parallelism().cuts_size(), 3);
  EXPECT_TRUE(job.spec.parallelism().optimizer_sharding());
  const EngineInputs inputs = ToEngineInputs(job.spec);
  EXPECT_EQ(inputs.layout.interleave, 2);
  EXPECT_EQ(inputs.stages.size(), 4u);
  const v1::Plan plan = ToProto(job.plan);
  EXPECT_EQ(plan.layout().interleave(), 2);
  EXPECT_EQ(plan.stages_size(), 4);
  EXPECT_EQ(plan.pipeline().in_flight_size(), 4);

  const ResolvedJob again = ResolveSpec(job.spec, {0, "job-7"});
  EXPECT_TRUE(MessageDifferencer::Equals(job.spec, again.spec));
}

TEST(ResolveTest, TheDevicesMemoryStandsInForTheSpecs) {
  const v1::JobSpec spec = SpecOf(JobWith(", memory_per_rank: 512MiB", ""));
  EXPECT_TRUE(ResolveSpec(spec, {512 * kMiB, ""}).plan.feasible);
  const ResolvedJob refused = ResolveSpec(spec, {1 * kMiB, ""});
  EXPECT_FALSE(refused.plan.feasible);
  ASSERT_EQ(refused.plan.problems.size(), 1u);
  EXPECT_EQ(refused.plan.problems[0].field, "resources.memory_per_rank");
}

TEST(ResolveTest, AnInvalidSpecIsAnInfeasiblePlan) {
  v1::JobSpec spec = SpecOf(GoodJob());
  spec.mutable_model()->set_heads(3);
  const ResolvedJob job = ResolveSpec(spec);
  EXPECT_FALSE(job.plan.feasible);
  ASSERT_EQ(job.plan.problems.size(), 1u);
  EXPECT_EQ(job.plan.problems[0].code, "HEADS_DO_NOT_DIVIDE_HIDDEN");
}

TEST(ResolveTest, GivenCutsAreKept) {
  const ResolvedJob job = ResolveSpec(SpecOf(JobWith("pipeline: 2}", "pipeline: 2, cuts: [1]}")));
  ASSERT_TRUE(job.plan.feasible);
  EXPECT_EQ(job.plan.stages[0].unit_names, std::vector<std::string>{"embedding"});
  EXPECT_THAT(job.spec.parallelism().cuts(), testing::ElementsAre(1));
}

TEST(ResolveTest, TheEngineGetsWhatThePlanCounted) {
  const ResolvedJob job = ResolveSpec(SpecOf(GoodJob()));
  const EngineInputs inputs = ToEngineInputs(job.spec);
  EXPECT_EQ(inputs.layout.ranks(), 4);
  EXPECT_EQ(inputs.layout.accumulation_steps, 4);
  EXPECT_EQ(inputs.layout.accumulation_steps, job.plan.layout.accumulation_steps);
  EXPECT_EQ(inputs.layout.precision, Precision::kBf16);
  ASSERT_EQ(inputs.stages.size(), 2u);
  EXPECT_EQ(inputs.stages[1].first, job.plan.stages[1].units.first);
  EXPECT_EQ(inputs.stages[1].last, inputs.model.units());
  EXPECT_EQ(ParameterCount(inputs.model), job.plan.parameters);
}

TEST(ResolveTest, ThePlanMessageHasEveryFigure) {
  const ResolvedJob job = ResolveSpec(SpecOf(GoodJob()));
  const v1::Plan plan = ToProto(job.plan);
  EXPECT_TRUE(plan.feasible());
  EXPECT_EQ(plan.layout().accumulation_steps(), 4);
  EXPECT_EQ(plan.layout().precision(), "bf16");
  EXPECT_EQ(plan.parameters(), job.plan.parameters);
  ASSERT_EQ(plan.stages_size(), 2);
  EXPECT_EQ(plan.stages(0).units(0), "embedding");
  EXPECT_EQ(plan.stages(1).last_unit(), 6);
  ASSERT_EQ(plan.ranks_size(), 4);
  EXPECT_EQ(plan.ranks(3).rank(), 3);
  EXPECT_EQ(plan.ranks(3).limit_bytes(), 512 * kMiB);
  EXPECT_EQ(plan.ranks(3).arena_bytes(), job.plan.ranks[3].arena_bytes);
  EXPECT_EQ(plan.ranks(3).memory().logits(), job.plan.ranks[3].memory[static_cast<size_t>(MemoryCategory::kLogits)]);
  EXPECT_GT(plan.ranks(3).memory().logits(), 0);
  EXPECT_THAT(plan.pipeline().in_flight(), testing::ElementsAre(2, 1));
  EXPECT_GT(plan.pipeline().bubble_of_ideal(), plan.pipeline().bubble_of_total());
  const v1::Plan refused = ToProto(ResolveSpec(v1::JobSpec()).plan);
  EXPECT_FALSE(refused.feasible());
  EXPECT_EQ(refused.problems(0).field(), "name");
}

}  // namespace
}  // namespace muster
