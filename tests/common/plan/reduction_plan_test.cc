#include "common/plan/reduction_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace muster {
namespace {

ModelShape Shape(bool tied) {
  return {.family = ModelFamily::kGpt2,
          .layers = 2,
          .hidden = 8,
          .heads = 4,
          .kv_heads = 4,
          .ffn = 32,
          .vocab = 101,
          .context = 16,
          .tied = tied};
}

std::vector<GradientInfo> WholeModel(const ModelShape& shape, int64_t tensor = 1, int64_t tensor_rank = 0) {
  return GradientsOf(shape, {{0, shape.units()}}, tensor, tensor_rank);
}

std::vector<ReductionBucket> AllBuckets(const ReductionPlan& plan) {
  std::vector<ReductionBucket> buckets = plan.during_backward;
  buckets.insert(buckets.end(), plan.after_backward.begin(), plan.after_backward.end());
  return buckets;
}

TEST(GradientsOf, FollowBackwardAndHaveTwoAccumulatorsOfATiedWeight) {
  const std::vector<GradientInfo> gradients = WholeModel(Shape(/*tied=*/true));
  EXPECT_EQ(gradients.size(), Parameters(Shape(true)).size() + 1);
  EXPECT_EQ(gradients.front().unit, 5);
  EXPECT_EQ(gradients.back().unit, 0);
  EXPECT_TRUE(std::is_sorted(gradients.begin(), gradients.end(),
                             [](const GradientInfo& a, const GradientInfo& b) { return a.unit > b.unit; }));
  const auto entries = [&](const std::string& entry) {
    return std::count_if(gradients.begin(), gradients.end(), [&](const GradientInfo& g) { return g.entry == entry; });
  };
  EXPECT_EQ(entries("gradient/embedding.token.weight"), 1);
  EXPECT_EQ(entries("gradient/embedding.token.weight@head"), 1);
}

TEST(GradientsOf, TheLastStageHasOnlyTheHeadsAccumulatorOfATiedWeight) {
  const ModelShape shape = Shape(/*tied=*/true);
  const std::vector<GradientInfo> gradients = GradientsOf(shape, {{4, shape.units()}}, 1, 0);
  EXPECT_TRUE(std::none_of(gradients.begin(), gradients.end(), [](const GradientInfo& gradient) {
    return gradient.entry == "gradient/embedding.token.weight";
  }));
}

TEST(PlanReduction, SumsEveryElementOnceWhateverTheBuckets) {
  const std::vector<GradientInfo> gradients = WholeModel(Shape(/*tied=*/true));
  for (const int64_t data : {1, 2, 3, 7}) {
    for (const int64_t part : {32, 100, 100000}) {
      std::vector<std::vector<int>> summed;
      for (const GradientInfo& gradient : gradients) {
        summed.emplace_back(static_cast<size_t>(gradient.shard.local_elements()), 0);
      }
      for (const ReductionBucket& bucket : AllBuckets(PlanReduction(gradients, data, part))) {
        std::vector<int64_t> of_replica(static_cast<size_t>(data), 0);
        for (const ReductionSegment& segment : bucket.segments) {
          ASSERT_EQ(segment.runs.size(), static_cast<size_t>(data));
          for (size_t replica = 0; replica < segment.runs.size(); ++replica) {
            const ElementRun& run = segment.runs[replica];
            of_replica[replica] += run.elements;
            for (int64_t i = 0; i < run.elements; ++i) {
              ++summed[segment.gradient][static_cast<size_t>(run.first + i)];
            }
          }
        }
        EXPECT_LE(*std::max_element(of_replica.begin(), of_replica.end()), part);
      }
      for (const std::vector<int>& counts : summed) {
        EXPECT_EQ(std::count(counts.begin(), counts.end(), 1), static_cast<int64_t>(counts.size())) << data << part;
      }
    }
  }
}

TEST(PlanReduction, StartsAUnitsBucketsWithoutWaitingForEarlierUnits) {
  const std::vector<GradientInfo> gradients = WholeModel(Shape(/*tied=*/false));
  const ReductionPlan plan = PlanReduction(gradients, 2, 100000);
  ASSERT_EQ(plan.during_backward.size(), 6u) << "a bucket for each unit";
  for (size_t i = 0; i < plan.during_backward.size(); ++i) {
    EXPECT_EQ(plan.during_backward[i].unit, 5 - static_cast<int64_t>(i));
    for (const ReductionSegment& segment : plan.during_backward[i].segments) {
      EXPECT_EQ(gradients[segment.gradient].unit, plan.during_backward[i].unit);
    }
  }
  EXPECT_TRUE(plan.after_backward.empty());
}

TEST(PlanReduction, LeavesWhatTheTensorGroupSharesUntilBackwardIsDone) {
  const std::vector<GradientInfo> gradients = WholeModel(Shape(/*tied=*/false), /*tensor=*/2, /*tensor_rank=*/1);
  const ReductionPlan plan = PlanReduction(gradients, 2, 100000);
  ASSERT_EQ(plan.after_backward.size(), 1u);
  for (const ReductionSegment& segment : plan.after_backward[0].segments) {
    EXPECT_EQ(gradients[segment.gradient].parameter.dims.size(), 1u) << gradients[segment.gradient].entry;
  }
  for (const ReductionBucket& bucket : plan.during_backward) {
    for (const ReductionSegment& segment : bucket.segments) {
      EXPECT_EQ(gradients[segment.gradient].entry.find("norm"), std::string::npos);
    }
  }
}

TEST(ReductionScratch, HoldsTwoOfTheLargestBlockUnitAndNoneForOneReplica) {
  const ModelShape shape = Shape(/*tied=*/true);
  const int64_t ffn = 2 * 32 * 8 + 32 + 3 * 8;  // up and down, their biases, the norm's two
  EXPECT_EQ(ReductionScratchBytes(shape, {.data = 1}), 0);
  EXPECT_EQ(ReductionPartElements(shape, {.data = 4}), ffn / 4);
  EXPECT_EQ(ReductionScratchBytes(shape, {.data = 4}), 2 * 3 * ffn / 4 * 4);
}

}  // namespace
}  // namespace muster
