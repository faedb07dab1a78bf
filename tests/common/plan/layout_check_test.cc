#include "common/plan/layout_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

// GPT-2 124m as 2 replicas x 2 stages.
LayoutRequest Good() {
  LayoutRequest request;
  ModelShape& shape = request.shape;
  shape.layers = 12;
  shape.hidden = 768;
  shape.heads = shape.kv_heads = 12;
  shape.ffn = 3072;
  shape.vocab = 50257;
  shape.context = 1024;
  request.layout.data = 2;
  request.layout.pipeline = 2;
  request.layout.micro_batch = 8;
  request.layout.sequence_length = 1024;
  request.ranks = 4;
  request.global_batch = 256;
  return request;
}

Layout ThreeStages() {
  Layout layout;
  layout.pipeline = 3;
  return layout;
}

// The only problem of `request`.
Problem OnlyProblem(const LayoutRequest& request) {
  const std::vector<Problem> problems = CheckLayout(request);
  EXPECT_EQ(problems.size(), 1u);
  return problems.empty() ? Problem() : problems[0];
}

TEST(LayoutCheckTest, AGoodLayoutHasNoProblems) { EXPECT_THAT(CheckLayout(Good()), testing::IsEmpty()); }

TEST(LayoutCheckTest, HeadsMustDivideHidden) {
  LayoutRequest request = Good();
  request.shape.heads = request.shape.kv_heads = 10;
  const Problem problem = OnlyProblem(request);
  EXPECT_EQ(problem.code, "HEADS_DO_NOT_DIVIDE_HIDDEN");
  EXPECT_EQ(problem.field, "model.heads");
  EXPECT_EQ(problem.message, "10 heads do not divide hidden 768");
  EXPECT_THAT(problem.suggestion, HasSubstr("8, 12"));
}

TEST(LayoutCheckTest, LayoutMustEqualTheRanksAndConsistentOnesAreNamed) {
  LayoutRequest request = Good();
  request.layout.data = 4;
  request.layout.pipeline = 4;
  request.ranks = 8;
  const Problem problem = OnlyProblem(request);
  EXPECT_EQ(problem.code, "LAYOUT_NOT_EQUAL_TO_RANKS");
  EXPECT_EQ(problem.field, "parallelism");
  EXPECT_EQ(problem.message, "data 4 x tensor 1 x pipeline 4 = 16 ranks, resources.ranks is 8");
  EXPECT_EQ(problem.suggestion,
            "consistent with 8: data 4 x tensor 1 x pipeline 2, data 2 x tensor 1 x pipeline 4, data 8 x tensor 1 x "
            "pipeline 1");
}

TEST(LayoutCheckTest, ReplicasLeftToBeChosenNeedADivisibleNumberOfRanks) {
  LayoutRequest request = Good();
  request.layout.data = 0;
  EXPECT_THAT(CheckLayout(request), testing::IsEmpty());
  request.ranks = 5;
  EXPECT_EQ(OnlyProblem(request).message, "resources.ranks is 5, not a multiple of tensor 1 x pipeline 2");
}

TEST(LayoutCheckTest, GlobalBatchMustDivideOverReplicas) {
  LayoutRequest request = Good();
  request.global_batch = 255;
  const Problem problem = OnlyProblem(request);
  EXPECT_EQ(problem.code, "GLOBAL_BATCH_NOT_DIVISIBLE");
  EXPECT_EQ(problem.field, "training.global_batch");
  EXPECT_THAT(problem.suggestion, HasSubstr("254, 256"));
}

TEST(LayoutCheckTest, MicroBatchMustDivideThePerReplicaBatchAndDivisorsAreNamed) {
  LayoutRequest request = Good();
  request.layout.micro_batch = 12;
  request.global_batch = 128;
  const Problem problem = OnlyProblem(request);
  EXPECT_EQ(problem.code, "MICRO_BATCH_NOT_A_DIVISOR");
  EXPECT_EQ(problem.field, "training.micro_batch");
  EXPECT_THAT(problem.message, HasSubstr("12 does not divide the per-replica batch of 64"));
  EXPECT_EQ(problem.suggestion, "divisors: 1, 2, 4, 8, 16, 32, 64");
  request.layout.micro_batch = 0;
  EXPECT_THAT(CheckLayout(request), testing::IsEmpty());
}

TEST(LayoutCheckTest, StagesAreAtMostTheUnits) {
  LayoutRequest request = Good();
  request.shape.layers = 2;
  request.layout.data = 1;
  request.layout.pipeline = request.ranks = 7;
  EXPECT_EQ(OnlyProblem(request).code, "MORE_STAGES_THAN_UNITS");
  request.layout.pipeline = request.ranks = 6;
  EXPECT_THAT(CheckLayout(request), testing::IsEmpty());
}

TEST(LayoutCheckTest, SequencesAreAtMostTheContext) {
  LayoutRequest request = Good();
  request.layout.sequence_length = 1025;
  EXPECT_EQ(OnlyProblem(request).code, "SEQUENCE_LONGER_THAN_CONTEXT");
}

TEST(LayoutCheckTest, SizesOutOfRangeAreNamedAndNothingIsDividedByThem) {
  LayoutRequest request = Good();
  request.shape.heads = 0;
  request.layout.tensor = 0;
  request.ranks = -1;
  std::vector<std::string> fields;
  for (const Problem& problem : CheckLayout(request)) fields.push_back(problem.field);
  EXPECT_THAT(fields, testing::ElementsAre("model.heads", "parallelism.tensor", "resources.ranks"));
}

TEST(LayoutCheckTest, InterleavingTakesMicroBatchesInGroupsOfThePipeline) {
  LayoutRequest request = Good();
  request.layout.interleave = 3;
  EXPECT_THAT(CheckLayout(request), testing::IsEmpty());

  request.global_batch = 48;  // 3 micro-batches of 8 a replica
  const Problem problem = OnlyProblem(request);
  EXPECT_EQ(problem.code, "INTERLEAVE_DOES_NOT_FIT");
  EXPECT_EQ(problem.field, "parallelism.interleave");
  EXPECT_THAT(problem.message, HasSubstr("groups of pipeline 2, and 3 of a replica are not a multiple of it"));
  EXPECT_EQ(problem.suggestion, "training.micro_batch that gives one: 1, 2, 3, 4, 6, 12; or use schedule 1f1b");
  request.layout.micro_batch = 0;
  EXPECT_THAT(CheckLayout(request), testing::IsEmpty());
  EXPECT_THAT(LegalMicroBatches(request), testing::ElementsAre(1, 2, 3, 4, 6, 12));

  request.global_batch = 6;
  EXPECT_THAT(OnlyProblem(request).suggestion, HasSubstr("training.global_batch a multiple of data x pipeline = 4"));
}

TEST(LayoutCheckTest, InterleavingNeedsAPipelineAndEnoughUnits) {
  LayoutRequest request = Good();
  request.layout.interleave = 14;
  const Problem too_many = OnlyProblem(request);
  EXPECT_EQ(too_many.field, "parallelism.interleave");
  EXPECT_THAT(too_many.message, HasSubstr("2 stages x 14 chunks = 28 runs of units, but 12 layers are only 26 units"));
  request.layout.interleave = 2;
  request.layout.pipeline = 1;
  request.layout.data = 4;
  EXPECT_THAT(OnlyProblem(request).message, HasSubstr("2 chunks on each rank, but parallelism.pipeline is 1"));
}

TEST(LayoutCheckTest, CutsMustMakeTheStagesInOrder) {
  std::vector<Problem> problems;
  const std::vector<UnitRange> stages = StagesFromCuts(Good().shape, ThreeStages(), {4, 9}, &problems);
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[1].first, 4);
  EXPECT_EQ(stages[2].last, 26);
  EXPECT_THAT(problems, testing::IsEmpty());
  for (const std::vector<int64_t>& bad : std::vector<std::vector<int64_t>>{{4}, {9, 4}, {4, 26}, {0, 4}, {4, 4}}) {
    problems.clear();
    EXPECT_THAT(StagesFromCuts(Good().shape, ThreeStages(), bad, &problems), testing::IsEmpty());
    EXPECT_EQ(problems.size(), 1u);
  }
}

TEST(LayoutCheckTest, InterleavedCutsMakeARunForEveryChunk) {
  Layout layout = ThreeStages();
  layout.interleave = 2;
  std::vector<Problem> problems;
  EXPECT_EQ(StagesFromCuts(Good().shape, layout, {4, 9, 13, 17, 21}, &problems).size(), 6u);
  EXPECT_THAT(problems, testing::IsEmpty());
  EXPECT_THAT(StagesFromCuts(Good().shape, layout, {4, 9}, &problems), testing::IsEmpty());
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].message, HasSubstr("into 3 stages x 2 chunks = 6 runs"));
}

TEST(LayoutCheckTest, DivisorsAscend) {
  EXPECT_THAT(Divisors(1), testing::ElementsAre(1));
  EXPECT_THAT(Divisors(36), testing::ElementsAre(1, 2, 3, 4, 6, 9, 12, 18, 36));
}

}  // namespace
}  // namespace muster
