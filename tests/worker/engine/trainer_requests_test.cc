// What is asked of one rank while it trains happens on all of them in the same step.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temporary_directory.h"
#include "tests/worker/engine/training_harness.h"
#include "worker/engine/trainer.h"

namespace muster {
namespace {

TEST(TrainerRequests, ACheckpointThatOneRankIsAskedForIsWrittenByAllAfterTheSameStep) {
  const TemporaryDirectory root;
  EngineConfig job = Cut(TinyJob(), {4}, 2);
  job.checkpoint.directory = root.path();
  const std::vector<RankResult> ranks =
      RunJob(job, {.on_step = [](int64_t rank, const StepReport& step, Trainer& trainer) {
               if (rank == 3 && step.step == 6) trainer.RequestCheckpoint();
             }});
  for (const RankResult& rank : ranks) {
    ASSERT_TRUE(rank.status.ok()) << rank.status.ToString();
    std::vector<int64_t> steps;
    for (const CheckpointReport& report : rank.checkpoints) steps.push_back(report.step);
    EXPECT_EQ(steps, (std::vector<int64_t>{7, 20}));
    EXPECT_EQ(rank.steps.size(), 20u) << "it goes on";
  }
}

// Time of each span that no span within it takes, by name: what the phases of the step's report should be.
std::map<std::string, double> SelfSeconds(const TraceReport& trace, int64_t step) {
  std::vector<TraceSpan> spans;
  for (const TraceSpan& span : trace.spans) {
    if (span.step == step && span.category != TraceSpan::Category::kUnit) spans.push_back(span);
  }
  std::map<std::string, double> seconds;
  std::vector<TraceSpan> within;  // ended, and not yet taken from the one around them
  for (const TraceSpan& span : spans) {
    double own = absl::ToDoubleSeconds(span.end - span.begin);
    while (!within.empty() && within.back().begin >= span.begin) {
      EXPECT_LE(within.back().end, span.end) << within.back().name << " in " << span.name;
      own -= absl::ToDoubleSeconds(within.back().end - within.back().begin);
      within.pop_back();
    }
    EXPECT_TRUE(within.empty() || within.back().end <= span.begin) << within.back().name << " overlaps " << span.name;
    within.push_back(span);
    seconds[span.category == TraceSpan::Category::kStep ? "other" : span.name] += own;
  }
  return seconds;
}

TEST(TrainerRequests, ATimelineCoversTheSameStepsOnEveryRankAndAddsUpToTheirPhases) {
  const std::vector<RankResult> ranks =
      RunJob(Cut(TinyJob(), {4}, 2), {.on_step = [](int64_t rank, const StepReport& step, Trainer& trainer) {
               if (rank == 1 && step.step == 4) trainer.RequestTrace(3);
             }});
  for (const RankResult& rank : ranks) {
    ASSERT_TRUE(rank.status.ok()) << rank.status.ToString();
    ASSERT_EQ(rank.traces.size(), 1u);
    const TraceReport& trace = rank.traces[0];
    EXPECT_EQ(trace.first_step, 6);  // the request travels with the vote of step 5
    EXPECT_EQ(trace.steps, 3);
    std::map<std::string, double> seconds = SelfSeconds(trace, 7);
    double whole = 0;
    for (int phase = 0; phase < kPhases; ++phase) {
      const std::string name = PhaseName(static_cast<Phase>(phase));
      EXPECT_NEAR(seconds[name], rank.steps[6].phase_seconds[static_cast<size_t>(phase)], 1e-3) << name;
      whole += seconds[name];
    }
    EXPECT_NEAR(whole, rank.steps[6].seconds, 0.01 * rank.steps[6].seconds + 1e-4);
  }
}

TEST(TrainerRequests, ATimelineHasEveryPassOfEveryMicroBatchAndEveryUnitInThem) {
  const std::vector<RankResult> ranks =
      RunJob(Cut(TinyJob(), {4}, 2), {.on_step = [](int64_t rank, const StepReport& step, Trainer& trainer) {
               if (rank == 0 && step.step == 1) trainer.RequestTrace(1);
             }});
  const EngineConfig job = Cut(TinyJob(), {4}, 2);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    ASSERT_EQ(ranks[rank].traces.size(), 1u);
    std::map<std::pair<std::string, int64_t>, int> passes;
    std::map<std::string, int64_t> units;
    for (const TraceSpan& span : ranks[rank].traces[0].spans) {
      if (span.category == TraceSpan::Category::kPass) ++passes[{span.name, span.micro_batch}];
      if (span.category == TraceSpan::Category::kUnit) ++units[span.name];
    }
    const int64_t micro_batches = job.layout.accumulation_steps;
    EXPECT_EQ(static_cast<int64_t>(passes.size()), 2 * micro_batches) << "forward and backward of each";
    for (const auto& [pass, count] : passes) EXPECT_EQ(count, 1) << pass.first << " " << pass.second;
    const UnitRange range =
        job.stages[static_cast<size_t>(CoordinateOf(job.layout, static_cast<int64_t>(rank)).pipeline)];
    EXPECT_EQ(static_cast<int64_t>(units.size()), range.last - range.first);
    for (const auto& [unit, count] : units) EXPECT_EQ(count, 2 * micro_batches) << unit;
  }
}

TEST(TrainerRequests, ATraceThatTheEndOfTrainingCutsShortIsHandedOnWithTheStepsThereWere) {
  EngineConfig job = TinyJob();
  const std::vector<RankResult> ranks =
      RunJob(job, {.on_step = [](int64_t /*rank*/, const StepReport& step, Trainer& trainer) {
               if (step.step == 17) trainer.RequestTrace(100);
             }});
  ASSERT_EQ(ranks[0].traces.size(), 1u);
  EXPECT_EQ(ranks[0].traces[0].first_step, 19);
  EXPECT_EQ(ranks[0].traces[0].steps, 2);
}

}  // namespace
}  // namespace muster
