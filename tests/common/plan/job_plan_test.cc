#include "common/plan/job_plan.h"

#include <numeric>

#include "common/plan/pipeline_simulation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

// Four layers as 2 replicas x 2 stages.
JobPlanRequest Small() {
  JobPlanRequest request;
  ModelShape& shape = request.job.shape;
  shape.layers = 4;
  shape.hidden = 128;
  shape.heads = shape.kv_heads = 4;
  shape.ffn = 512;
  shape.vocab = 256;
  shape.context = 64;
  request.job.layout.data = 2;
  request.job.layout.pipeline = 2;
  request.job.layout.micro_batch = 4;
  request.job.layout.sequence_length = 64;
  request.job.layout.precision = Precision::kBf16;
  request.job.ranks = 4;
  request.job.global_batch = 64;
  request.memory_per_rank_bytes = 1024 * kMiB;
  return request;
}

TEST(JobPlanTest, AJobThatFitsIsDescribedWhole) {
  const JobPlan plan = BuildJobPlan(Small());
  EXPECT_TRUE(plan.feasible);
  EXPECT_THAT(plan.problems, testing::IsEmpty());
  EXPECT_EQ(plan.layout.accumulation_steps, 8);
  EXPECT_EQ(plan.parameters, ParameterCount(Small().job.shape));
  ASSERT_EQ(plan.stages.size(), 2u);
  EXPECT_EQ(plan.stages[0].unit_names.front(), "embedding");
  EXPECT_EQ(plan.stages[1].unit_names.back(), "head");
  EXPECT_EQ(plan.stages[0].units.last, plan.stages[1].units.first);
  EXPECT_EQ(plan.stages[0].in_flight, 2);
  EXPECT_EQ(plan.stages[1].in_flight, 1);
  // The tied table is held by both stages.
  EXPECT_EQ(plan.stages[0].parameters + plan.stages[1].parameters, plan.parameters + 256 * 128);
  EXPECT_GE(plan.bubble_of_ideal, UniformBubbleOfIdeal(2, 8));
}

TEST(JobPlanTest, InterleavingIsPlannedByChunkAndShrinksTheBubble) {
  JobPlanRequest request = Small();
  const JobPlan plain = BuildJobPlan(request);
  request.job.layout.interleave = 2;
  const JobPlan plan = BuildJobPlan(request);
  ASSERT_TRUE(plan.feasible);
  ASSERT_EQ(plan.stages.size(), 4u);
  EXPECT_EQ(plan.ranks.size(), 4u);
  // Rank 0 runs virtual stages 0 and 2: 2 (p - 1) + p forwards and one more come before its first backward, p of each
  // group through each chunk in turn.
  EXPECT_EQ(plan.stages[0].in_flight, 4);
  EXPECT_EQ(plan.stages[2].in_flight, 2);
  EXPECT_LT(plan.bubble_of_total, plain.bubble_of_total);
  // The four more micro-batches in flight are of half as many units each: it takes more memory.
  EXPECT_GT(plan.ranks[0].arena_bytes, plain.ranks[0].arena_bytes);
}

// What FillMemory relies on: it plans one rank of a stage.
TEST(JobPlanTest, RanksOfAStageAreAlikeHoweverUnevenTheirShares) {
  ModelShape shape = Small().job.shape;
  shape.vocab = 257;  // padded for a tensor group of 4
  Layout layout = Small().job.layout;
  layout.data = 3;
  layout.tensor = 4;
  layout.interleave = 2;
  layout.accumulation_steps = 4;
  layout.optimizer_sharding = true;  // 257 and 128 rows over 3 replicas
  const std::vector<UnitRange> stages = BalancedStages(shape, layout);
  for (int64_t rank = 0; rank < layout.ranks(); ++rank) {
    const int64_t stage = CoordinateOf(layout, rank).pipeline;
    const std::vector<UnitRange> chunks = ChunksOf(layout, stages, stage);
    const Ledger first = BuildLedger(shape, layout, chunks, RankOf(layout, {0, 0, stage}));
    const Ledger mine = BuildLedger(shape, layout, chunks, rank);
    ASSERT_EQ(mine.entries.size(), first.entries.size()) << "rank " << rank;
    for (size_t i = 0; i < mine.entries.size(); ++i) {
      EXPECT_EQ(mine.entries[i].name, first.entries[i].name);
      EXPECT_EQ(mine.entries[i].bytes(), first.entries[i].bytes()) << mine.entries[i].name << " of rank " << rank;
    }
  }
}

TEST(JobPlanTest, RanksAreInOrderAndTheirBytesAddUp) {
  const JobPlan plan = BuildJobPlan(Small());
  ASSERT_EQ(plan.ranks.size(), 4u);
  for (int64_t i = 0; i < 4; ++i) {
    const RankPlan& rank = plan.ranks[i];
    EXPECT_EQ(rank.rank, i);
    EXPECT_EQ(rank.stage, i / 2);
    EXPECT_GT(rank.arena_bytes, 0);
    EXPECT_GE(rank.arena_bytes, rank.arena_lower_bound_bytes);
    EXPECT_LE(rank.arena_bytes + rank.pinned_bytes + rank.host_bytes,
              std::accumulate(rank.memory.begin(), rank.memory.end(), int64_t{0}));
    EXPECT_EQ(rank.total_bytes, rank.arena_bytes + rank.pinned_bytes + rank.host_bytes + rank.outside_bytes);
  }
  EXPECT_FALSE(plan.outside_source.empty());
}

TEST(JobPlanTest, OneByteTooLittleIsInfeasibleAndTheSuggestionFits) {
  JobPlanRequest request = Small();
  const JobPlan fits = BuildJobPlan(request);
  int64_t fullest = 0;
  for (const RankPlan& rank : fits.ranks) fullest = std::max(fullest, rank.total_bytes);
  request.memory_per_rank_bytes = fullest;
  EXPECT_TRUE(BuildJobPlan(request).feasible);

  request.memory_per_rank_bytes = fullest - 1;
  const JobPlan over = BuildJobPlan(request);
  EXPECT_FALSE(over.feasible);
  ASSERT_EQ(over.problems.size(), 1u);
  EXPECT_EQ(over.problems[0].code, "RANK_OVER_MEMORY");
  EXPECT_EQ(over.problems[0].field, "resources.memory_per_rank");
  EXPECT_THAT(over.problems[0].suggestion, HasSubstr("training.micro_batch 2 fits, with 16 micro-batches"));
  EXPECT_EQ(over.ranks.size(), 4u);  // the plan says by how much
  request.job.layout.micro_batch = 2;
  EXPECT_TRUE(BuildJobPlan(request).feasible);
}

TEST(JobPlanTest, NoMicroBatchFitsInNoMemory) {
  JobPlanRequest request = Small();
  request.memory_per_rank_bytes = 97 * kMiB;
  const JobPlan plan = BuildJobPlan(request);
  ASSERT_EQ(plan.problems.size(), 1u);
  EXPECT_THAT(plan.problems[0].suggestion, HasSubstr("no micro-batch fits"));
  EXPECT_THAT(plan.problems[0].message, HasSubstr("4 ranks are over"));
}

TEST(JobPlanTest, WithoutAKnownLimitNothingIsOver) {
  JobPlanRequest request = Small();
  request.memory_per_rank_bytes = 0;
  EXPECT_TRUE(BuildJobPlan(request).feasible);
}

TEST(JobPlanTest, AutoMicroBatchIsTheLargestThatFitsAndFillsThePipeline) {
  JobPlanRequest request = Small();
  request.job.layout.micro_batch = 0;
  // 32 sequences a replica, 2 stages: 16 x 2 still keeps both stages busy.
  EXPECT_EQ(BuildJobPlan(request).layout.micro_batch, 16);

  request.job.layout.micro_batch = 8;
  int64_t fullest = 0;
  for (const RankPlan& rank : BuildJobPlan(request).ranks) fullest = std::max(fullest, rank.total_bytes);
  request.memory_per_rank_bytes = fullest;
  request.job.layout.micro_batch = 0;
  const JobPlan plan = BuildJobPlan(request);
  EXPECT_TRUE(plan.feasible);
  EXPECT_EQ(plan.layout.micro_batch, 8);
  EXPECT_EQ(plan.layout.accumulation_steps, 4);
}

TEST(JobPlanTest, AutoMicroBatchWithoutALimitIsRefused) {
  JobPlanRequest request = Small();
  request.job.layout.micro_batch = 0;
  request.memory_per_rank_bytes = 0;
  const JobPlan plan = BuildJobPlan(request);
  EXPECT_FALSE(plan.feasible);
  ASSERT_EQ(plan.problems.size(), 1u);
  EXPECT_EQ(plan.problems[0].code, "MEMORY_NOT_KNOWN");
}

TEST(JobPlanTest, WhatNoIntegerCountsIsRefusedAndNotComputed) {
  JobPlanRequest request = Small();
  ModelShape& shape = request.job.shape;
  shape.layers = kLargestLayers;
  shape.hidden = shape.heads = shape.kv_heads = kLargestWidth;
  shape.ffn = kLargestFfn;
  shape.vocab = kLargestVocab;
  shape.context = request.job.layout.sequence_length = kLargestContext;
  request.job.global_batch = 735134400;  // has 1344 divisors
  for (int64_t micro_batch : {0, 1, 367567200}) {
    request.job.layout.micro_batch = micro_batch;
    const JobPlan plan = BuildJobPlan(request);
    EXPECT_FALSE(plan.feasible);
    ASSERT_EQ(plan.problems.size(), 1u);
    EXPECT_EQ(plan.problems[0].code, "TOO_LARGE_TO_COUNT");
    EXPECT_THAT(plan.ranks, testing::IsEmpty());
  }
}

TEST(JobPlanTest, AutoReplicasFollowFromTheRanks) {
  JobPlanRequest request = Small();
  request.job.layout.data = 0;
  const JobPlan plan = BuildJobPlan(request);
  EXPECT_TRUE(plan.feasible);
  EXPECT_EQ(plan.layout.data, 2);
}

TEST(JobPlanTest, AnIllegalLayoutHasProblemsAndNoRanks) {
  JobPlanRequest request = Small();
  request.job.shape.heads = request.job.shape.kv_heads = 3;
  request.job.ranks = 5;
  const JobPlan plan = BuildJobPlan(request);
  EXPECT_FALSE(plan.feasible);
  EXPECT_EQ(plan.problems.size(), 2u);
  EXPECT_THAT(plan.ranks, testing::IsEmpty());
}

TEST(JobPlanTest, GivenStagesAreKept) {
  JobPlanRequest request = Small();
  request.stages = {{0, 2}, {2, 10}};
  const JobPlan plan = BuildJobPlan(request);
  ASSERT_EQ(plan.stages.size(), 2u);
  EXPECT_THAT(plan.stages[0].unit_names, testing::ElementsAre("embedding", "0.attention"));
}

}  // namespace
}  // namespace muster
