#include "common/plan/partition.h"

#include <algorithm>
#include <random>

#include "common/plan/pipeline_simulation.h"
#include "common/plan/unit_cost.h"
#include "gtest/gtest.h"
#include "tests/common/plan/planner_oracle.h"

namespace muster {
namespace {

double MaximumOf(const std::vector<double>& costs, const std::vector<UnitRange>& cut) {
  const std::vector<double> stage_costs = StageCosts(costs, cut);
  return *std::max_element(stage_costs.begin(), stage_costs.end());
}

void ExpectCovers(const std::vector<UnitRange>& cut, int64_t units) {
  int64_t next = 0;
  for (const UnitRange& stage : cut) {
    EXPECT_EQ(stage.first, next);
    EXPECT_GT(stage.last, stage.first);
    next = stage.last;
  }
  EXPECT_EQ(next, units);
}

// Every cut there is.
double ExhaustiveBest(const std::vector<double>& costs, size_t first, int64_t stages) {
  if (stages == 1) {
    double sum = 0;
    for (size_t i = first; i < costs.size(); ++i) sum += costs[i];
    return sum;
  }
  double best = 1e300;
  double mine = 0;
  for (size_t last = first + 1; last + static_cast<size_t>(stages) - 1 <= costs.size(); ++last) {
    mine += costs[last - 1];
    best = std::min(best, std::max(mine, ExhaustiveBest(costs, last, stages - 1)));
  }
  return best;
}

TEST(PartitionTest, FindsThePublishedBest) {
  for (const nlohmann::json& row : PlannerOracle("partition").at("rows")) {
    const std::vector<double> costs = row.at("unit_costs");
    const auto cut = PartitionUnits(costs, row.at("stages"));
    ASSERT_TRUE(cut.ok()) << cut.status();
    EXPECT_EQ(MaximumOf(costs, *cut), row.at("best_maximum").get<double>());
  }
}

TEST(PartitionTest, IsAsGoodAsTryingEveryCut) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<double> costs(4 + random() % 6);
    for (double& cost : costs) cost = static_cast<double>(random() % 10);
    const int64_t stages = 1 + static_cast<int64_t>(random() % 4);
    const auto cut = PartitionUnits(costs, stages);
    ASSERT_TRUE(cut.ok()) << cut.status();
    ExpectCovers(*cut, static_cast<int64_t>(costs.size()));
    EXPECT_EQ(MaximumOf(costs, *cut), ExhaustiveBest(costs, 0, stages));
  }
}

TEST(PartitionTest, OfEqualMaximaTheMoreEvenCutIsTaken) {
  // The 9 alone sets the maximum; the rest is even only as 3 + 3.
  const auto cut = PartitionUnits({9, 2, 1, 1, 2}, 3);
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(StageCosts({9, 2, 1, 1, 2}, *cut), (std::vector<double>{9, 3, 3}));
}

TEST(PartitionTest, MoreStagesThanUnitsAreRefused) {
  EXPECT_EQ(PartitionUnits({1, 1}, 3).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PartitionTest, MemoryCapsMoveTheCut) {
  // The first stage may hold one unit only, as an early stage that keeps more micro-batches would.
  const auto one_unit_first = [](int64_t stage, UnitRange units) { return stage > 0 || units.last - units.first <= 1; };
  const auto cut = PartitionUnits({1, 1, 1, 1}, 2, one_unit_first);
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ((*cut)[0].last, 1);
  const auto none = PartitionUnits({1, 1, 1, 1}, 2, [](int64_t, UnitRange) { return false; });
  EXPECT_EQ(none.status().code(), absl::StatusCode::kResourceExhausted);
}

double Efficiency(const std::vector<double>& stage_costs, int64_t micro_batches) {
  std::vector<StageTimes> stages;
  for (double cost : stage_costs) stages.push_back({cost, 2 * cost});
  const PipelineTiming timing = SimulatePipeline(stages, 1, micro_batches);
  return timing.ideal / timing.total;
}

TEST(PartitionTest, CuttingBetweenAttentionAndFeedForwardBeatsWholeLayers) {
  ModelShape shape;
  shape.layers = 24;
  shape.hidden = 2048;
  shape.heads = shape.kv_heads = 16;
  shape.ffn = 4 * 2048;
  shape.vocab = 50257;
  shape.context = 1024;
  const std::vector<double> units = UnitForwardFlopsPerToken(shape, 1024);

  const auto halves = PartitionUnits(units, 4);
  ASSERT_TRUE(halves.ok()) << halves.status();
  EXPECT_GE(Efficiency(StageCosts(units, *halves), 32), 0.89);

  std::vector<double> layers = {units.front()};
  for (size_t i = 1; i + 1 < units.size(); i += 2) layers.push_back(units[i] + units[i + 1]);
  layers.push_back(units.back());
  const auto whole = PartitionUnits(layers, 4);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_NEAR(Efficiency(StageCosts(layers, *whole), 32), 0.853, 0.0005);

  const std::vector<UnitRange> uniform = {{0, 7}, {7, 13}, {13, 19}, {19, 26}};  // six layers a stage
  EXPECT_NEAR(Efficiency(StageCosts(layers, uniform), 32), 0.766, 0.0005);
}

}  // namespace
}  // namespace muster
