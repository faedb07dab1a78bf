#include "worker/rank/report_observer.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

class ReportObserverTest : public testing::Test {
 protected:
  ReportObserver Observer(int64_t rank, bool leader) {
    return ReportObserver([this](v1::RankReport report) { reports_.push_back(std::move(report)); }, rank, /*attempt=*/3,
                          leader, "/checkpoints");
  }

  std::vector<v1::RankReport> reports_;
};

TEST_F(ReportObserverTest, CarriesEveryFigureOfAStep) {
  StepReport report;
  report.step = 12;
  report.loss = 3.25;
  report.tokens = 2048;
  report.gradient_norm = 0.5;
  report.clip_factor = 0.75;
  report.learning_rate = 1e-3;
  report.loss_scale = 1024;
  report.skipped = true;
  report.skipped_steps = 4;
  report.seconds = 2;
  for (size_t phase = 0; phase < report.phase_seconds.size(); ++phase) report.phase_seconds[phase] = 1.0 + phase;
  Observer(2, /*leader=*/true).OnStep(report);
  ASSERT_EQ(reports_.size(), 1u);
  const v1::StepReport& step = reports_[0].step();
  EXPECT_EQ(step.step(), 12);
  EXPECT_EQ(step.loss(), 3.25);
  EXPECT_EQ(step.tokens(), 2048);
  EXPECT_EQ(step.gradient_norm(), 0.5);
  EXPECT_EQ(step.clip_factor(), 0.75);
  EXPECT_EQ(step.learning_rate(), 1e-3);
  EXPECT_EQ(step.loss_scale(), 1024);
  EXPECT_TRUE(step.skipped());
  EXPECT_EQ(step.skipped_steps(), 4);
  EXPECT_EQ(step.seconds(), 2);
  EXPECT_TRUE(step.leader());
  const v1::PhaseSeconds& phases = step.phases();
  EXPECT_EQ(phases.forward(), 1 + static_cast<int>(Phase::kForward));
  EXPECT_EQ(phases.bubble(), 1 + static_cast<int>(Phase::kBubble));
  EXPECT_EQ(phases.other(), 1 + static_cast<int>(Phase::kOther));
  EXPECT_EQ(phases.forward() + phases.backward() + phases.optimizer() + phases.comm_exposed() + phases.bubble() +
                phases.data_wait() + phases.checkpoint() + phases.other(),
            36);  // each phase once
}

TEST_F(ReportObserverTest, ACheckpointIsToldOnceAndBelowTheRoot) {
  CheckpointReport report;
  report.step = 50;
  report.directory = "/checkpoints/job-1/attempt-3/step-50";
  report.bytes = 1000;
  report.consumed_samples = 400;
  Observer(1, /*leader=*/false).OnCheckpoint(report);
  EXPECT_TRUE(reports_.empty());
  Observer(0, /*leader=*/false).OnCheckpoint(report);
  ASSERT_EQ(reports_.size(), 1u);
  EXPECT_EQ(reports_[0].checkpoint().path(), "job-1/attempt-3/step-50");
  EXPECT_EQ(reports_[0].checkpoint().attempt(), 3);
  EXPECT_EQ(reports_[0].checkpoint().step(), 50);
  EXPECT_EQ(reports_[0].checkpoint().consumed_samples(), 400);
}

TEST_F(ReportObserverTest, AnEventOfAllRanksIsToldOnceAndOneOfARankByThatRank) {
  EngineEvent event{.severity = EngineEvent::Severity::kWarning,
                    .type = "STEP_SKIPPED",
                    .message = "step 7 is skipped",
                    .details = {{"step", "7"}}};
  Observer(1, /*leader=*/true).OnEvent(event);
  EXPECT_TRUE(reports_.empty());
  Observer(0, /*leader=*/false).OnEvent(event);
  event.of_this_rank = true;
  Observer(1, /*leader=*/true).OnEvent(event);
  ASSERT_EQ(reports_.size(), 2u);
  EXPECT_EQ(reports_[0].event().severity(), v1::WARNING);
  EXPECT_EQ(reports_[0].event().type(), "STEP_SKIPPED");
  EXPECT_EQ(reports_[0].event().message(), "step 7 is skipped");
  EXPECT_EQ(reports_[0].event().details().at("step"), "7");
  EXPECT_EQ(reports_[0].event().rank(), -1);
  EXPECT_EQ(reports_[1].event().rank(), 1);
}

TEST_F(ReportObserverTest, MemoryKeepsItsCategories) {
  MemoryReport memory;
  for (size_t i = 0; i < memory.planned_bytes.size(); ++i) memory.planned_bytes[i] = static_cast<int64_t>(i) + 1;
  memory.used_bytes = memory.planned_bytes;
  memory.arena_bytes = 99;
  v1::RankStarted started;
  SetMemory(memory, started);
  EXPECT_EQ(started.planned().parameters(), 1);
  EXPECT_EQ(started.planned().optimizer_state(), 1 + static_cast<int>(MemoryCategory::kOptimizerState));
  EXPECT_EQ(started.used().staging(), 1 + static_cast<int>(MemoryCategory::kStaging));
  EXPECT_EQ(started.arena_bytes(), 99);
}

}  // namespace
}  // namespace muster
