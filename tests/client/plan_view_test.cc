#include "client/plan_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

v1::Plan FeasiblePlan() {
  v1::Plan plan;
  plan.set_feasible(true);
  plan.set_parameters(1'313'626'112);
  plan.set_model_flops_per_token(8.2e9);
  plan.set_flops_convention("6N+12LhT");
  plan.mutable_layout()->set_data(8);
  plan.mutable_layout()->set_tensor(1);
  plan.mutable_layout()->set_pipeline(1);
  plan.mutable_layout()->set_micro_batch(8);
  plan.mutable_layout()->set_accumulation_steps(4);
  plan.mutable_layout()->set_precision("bf16");
  plan.mutable_layout()->set_recompute("none");
  for (int i = 0; i < 8; ++i) {
    v1::PlanRank& rank = *plan.add_ranks();
    rank.set_rank(i);
    rank.set_arena_bytes(22'600'000'000);
    rank.set_outside_bytes(2'000'000'000);
    rank.set_total_bytes(24'600'000'000);
    rank.set_limit_bytes(40'000'000'000);
    rank.mutable_memory()->set_parameters(2'600'000'000);
  }
  return plan;
}

TEST(PlanViewTest, APlanThatFitsSaysSoFirstAndShowsEqualRanksOnce) {
  const std::string text = PlanText("eight", FeasiblePlan(), Palette(false));
  EXPECT_THAT(text, StartsWith("eight fits: 8 ranks, data 8, micro-batch 8 x 4 accumulation x 8 replicas = 256, bf16, "
                               "no recompute\n1,313,626,112 parameters   8.2 GFLOP/token (6N+12LhT)\n"));
  EXPECT_THAT(text, HasSubstr("rank   0-7"));
  EXPECT_THAT(text, HasSubstr("22.9 GiB of 37.3 GiB"));
  EXPECT_THAT(text, HasSubstr("parameters 2.4 GiB"));
  EXPECT_THAT(text, Not(HasSubstr("rank   1")));
}

TEST(PlanViewTest, ARankOverItsMemoryIsShownWithWhatIsMissing) {
  v1::Plan plan = FeasiblePlan();
  plan.set_feasible(false);
  v1::PlanProblem& problem = *plan.add_problems();
  problem.set_field("training.micro_batch");
  problem.set_message("rank 0 takes 42.4 GB of 40.0 GB");
  problem.set_suggestion("4 fits\n2 fits as well");
  plan.mutable_ranks(7)->set_total_bytes(42'400'000'000);
  const std::string text = PlanText("eight", plan, Palette(false));
  EXPECT_THAT(text, StartsWith("eight does not fit together: 1 problem\n"));
  EXPECT_THAT(text, HasSubstr("  training.micro_batch    rank 0 takes 42.4 GB of 40.0 GB\n"));
  EXPECT_THAT(text, HasSubstr("                          2 fits as well\n"));
  EXPECT_THAT(text, HasSubstr("rank   0-6"));
  EXPECT_THAT(text, HasSubstr("over by 2.2 GiB"));
  EXPECT_THAT(text, HasSubstr("Nothing was changed."));
}

TEST(PlanViewTest, ChunksAreShownWithTheRankOfThePipelineThatRunsThem) {
  v1::Plan plan = FeasiblePlan();
  plan.mutable_layout()->set_pipeline(2);
  plan.mutable_layout()->set_interleave(2);
  for (int i = 0; i < 4; ++i) {
    v1::PlanStage& stage = *plan.add_stages();
    stage.add_units(i == 0 ? "embedding" : "3.ffn");
    stage.set_parameters(1000);
    plan.mutable_pipeline()->add_in_flight(4 - i);
  }
  const std::string text = PlanText("interleaved", plan, Palette(false));
  EXPECT_THAT(text, HasSubstr("pipeline 2 x 2 chunks"));
  EXPECT_THAT(text,
              HasSubstr("stage  0 chunk 0   embedding .. embedding  1,000 parameters, 4 micro-batches in flight"));
  EXPECT_THAT(text, HasSubstr("stage  1 chunk 1   3.ffn .. 3.ffn  1,000 parameters, 1 micro-batch in flight"));
}

}  // namespace
}  // namespace muster
