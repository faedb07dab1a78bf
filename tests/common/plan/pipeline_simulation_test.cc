#include "common/plan/pipeline_simulation.h"

#include "gtest/gtest.h"
#include "tests/common/plan/planner_oracle.h"

namespace muster {
namespace {

// Stages of the same cost, those of one rank together (1, 2).
std::vector<StageTimes> EqualStages(int64_t ranks, int64_t chunks = 1) {
  const double part = 1.0 / static_cast<double>(chunks);
  return std::vector<StageTimes>(ranks * chunks, StageTimes{part, 2 * part});
}

TEST(PipelineSimulationTest, GivesThePublishedTimesAndBubbles) {
  const nlohmann::json table = PlannerOracle("pipeline_1f1b");
  const double tolerance = table.at("tolerance");
  for (const nlohmann::json& row : table.at("rows")) {
    const int64_t stages = row.at("stages");
    const int64_t micro_batches = row.at("micro_batches");
    const PipelineTiming timing = SimulatePipeline(EqualStages(stages), 1, micro_batches);
    EXPECT_EQ(timing.total, row.at("total_time").get<double>());
    EXPECT_NEAR(timing.bubble_of_total, row.at("bubble_of_total").get<double>(), tolerance);
    EXPECT_NEAR(UniformBubbleOfTotal(stages, micro_batches), row.at("bubble_of_total").get<double>(), tolerance);
  }
}

TEST(PipelineSimulationTest, EqualStagesFollowTheClosedForms) {
  for (int64_t stages = 1; stages <= 6; ++stages) {
    for (int64_t micro_batches = 1; micro_batches <= 12; ++micro_batches) {
      const PipelineTiming timing = SimulatePipeline(EqualStages(stages), 1, micro_batches);
      EXPECT_NEAR(timing.bubble_of_ideal, UniformBubbleOfIdeal(stages, micro_batches), 1e-12);
      EXPECT_NEAR(timing.bubble_of_total, UniformBubbleOfTotal(stages, micro_batches), 1e-12);
    }
  }
  const int64_t long_step = 100 * kSimulatedMicroBatches;
  EXPECT_NEAR(SimulatePipeline(EqualStages(4), 1, long_step).bubble_of_ideal, UniformBubbleOfIdeal(4, long_step),
              1e-12);
}

TEST(PipelineSimulationTest, InterleavingDividesTheBubbleByTheChunks) {
  for (int64_t ranks = 1; ranks <= 5; ++ranks) {
    for (int64_t chunks = 1; chunks <= 4; ++chunks) {
      for (const int64_t groups : {1, 2, 5, 3000}) {
        const int64_t micro_batches = groups * ranks;
        const PipelineTiming timing = SimulatePipeline(EqualStages(ranks, chunks), chunks, micro_batches);
        EXPECT_NEAR(timing.bubble_of_ideal, UniformBubbleOfIdeal(ranks, micro_batches, chunks), 1e-9)
            << ranks << " ranks of " << chunks << " chunks, " << micro_batches << " micro-batches";
        EXPECT_NEAR(timing.bubble_of_total, UniformBubbleOfTotal(ranks, micro_batches, chunks), 1e-9);
      }
    }
  }
}

TEST(PipelineSimulationTest, TheSlowestStageSetsThePaceAndTransfersAddUp) {
  const PipelineTiming uneven = SimulatePipeline({{1, 2}, {2, 4}}, 1, 10);
  // The second stage starts after one forward of the first and never waits again; the first ends one backward later.
  EXPECT_EQ(uneven.total, 1 + 10 * 6 + 2);
  const PipelineTiming with_transfers = SimulatePipeline({{1, 2}, {2, 4}}, 1, 10, 0.5);
  EXPECT_GT(with_transfers.total, uneven.total);
}

}  // namespace
}  // namespace muster
