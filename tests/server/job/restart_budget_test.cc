#include "server/job/restart_budget.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

AttemptOutcome Outcome(server::FailureCause cause, int64_t furthest_step) {
  AttemptOutcome outcome;
  outcome.cause = cause;
  outcome.furthest_step = furthest_step;
  return outcome;
}

TEST(RestartBudgetTest, AUserErrorIsNeverTriedAgainAndCostsNothing) {
  server::RestartBudgetRecord record;
  const RestartDecision decision = CountAndDecide(Outcome(server::USER_ERROR, 50), 5, &record);
  EXPECT_FALSE(decision.retry);
  EXPECT_EQ(decision.code, "USER_ERROR");
  EXPECT_EQ(record.restarts(), 0);
}

TEST(RestartBudgetTest, EveryOtherCauseIsTriedAgainAndCounted) {
  for (const server::FailureCause cause : {server::INFRASTRUCTURE, server::STOPPED_UNASKED, server::WORKER_LOST,
                                           server::NOT_STARTED, server::CRASHED, server::OUT_OF_MEMORY}) {
    server::RestartBudgetRecord record;
    EXPECT_TRUE(CountAndDecide(Outcome(cause, 10), 5, &record).retry);
    EXPECT_EQ(record.restarts(), 1);
    EXPECT_EQ(record.restarts_by_cause().at(server::FailureCause_Name(cause)), 1);
  }
}

TEST(RestartBudgetTest, MaxRestartsAreAllThatThereAre) {
  server::RestartBudgetRecord record;
  EXPECT_TRUE(CountAndDecide(Outcome(server::CRASHED, 10), 2, &record).retry);
  EXPECT_TRUE(CountAndDecide(Outcome(server::CRASHED, 20), 2, &record).retry);
  const RestartDecision third = CountAndDecide(Outcome(server::CRASHED, 30), 2, &record);
  EXPECT_FALSE(third.retry);
  EXPECT_EQ(third.code, "RESTARTS_SPENT");
  EXPECT_EQ(record.restarts(), 2);
}

TEST(RestartBudgetTest, ThreeAttemptsThatGetNoFurtherAreEnough) {
  server::RestartBudgetRecord record;
  EXPECT_TRUE(CountAndDecide(Outcome(server::CRASHED, 40), 100, &record).retry);
  EXPECT_TRUE(CountAndDecide(Outcome(server::CRASHED, 40), 100, &record).retry);
  EXPECT_TRUE(CountAndDecide(Outcome(server::CRASHED, 39), 100, &record).retry);
  const RestartDecision last = CountAndDecide(Outcome(server::CRASHED, 40), 100, &record);
  EXPECT_FALSE(last.retry);
  EXPECT_EQ(last.code, "NO_PROGRESS");
  EXPECT_NE(last.reason.find("step 40"), std::string::npos) << last.reason;
}

TEST(RestartBudgetTest, ProgressForgivesWhatWasBefore) {
  server::RestartBudgetRecord record;
  for (int64_t step = 0; step < 12; ++step) {
    // Every third attempt gets one step further.
    EXPECT_TRUE(CountAndDecide(Outcome(server::CRASHED, 1 + step / 3), 100, &record).retry) << step;
  }
}

TEST(RestartBudgetTest, ANewCheckpointIsProgressThoughNoStepIsNew) {
  server::RestartBudgetRecord record;
  AttemptOutcome outcome = Outcome(server::CRASHED, 90);
  outcome.new_checkpoint = true;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(CountAndDecide(outcome, 100, &record).retry);
}

TEST(RestartBudgetTest, TheCauseThatExplainsTheOthersWins) {
  EXPECT_EQ(WorseCause(server::INFRASTRUCTURE, server::USER_ERROR), server::USER_ERROR);
  EXPECT_EQ(WorseCause(server::CRASHED, server::INFRASTRUCTURE), server::CRASHED);
  EXPECT_EQ(WorseCause(server::INFRASTRUCTURE, CauseOfExit(v1::EXIT_KILLED)), server::INFRASTRUCTURE)
      << "an agent kills the neighbours of a rank that failed";
}

}  // namespace
}  // namespace muster
