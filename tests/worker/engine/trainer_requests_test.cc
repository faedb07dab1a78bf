// What is asked of one rank while it trains happens on all of them in the same step.
#include <gtest/gtest.h>

#include <string>
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

TEST(TrainerRequests, ATraceCoversTheSameStepsOnEveryRankWithoutAGap) {
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
    PhaseSeconds seconds{};
    for (size_t i = 0; i < trace.spans.size(); ++i) {
      const TraceSpan& span = trace.spans[i];
      if (span.step == 7) seconds[static_cast<size_t>(span.phase)] += absl::ToDoubleSeconds(span.end - span.begin);
      if (i == 0 || span.step != trace.spans[i - 1].step) continue;
      EXPECT_EQ(span.begin, trace.spans[i - 1].end);
    }
    for (size_t phase = 0; phase < seconds.size(); ++phase) {
      EXPECT_NEAR(seconds[phase], rank.steps[6].phase_seconds[phase], 1e-3) << PhaseName(static_cast<Phase>(phase));
    }
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
