#include "worker/data/data_wait_advice.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// A window of steps of a second, of which every `period`-th waits so long; the advice at its end, "" for none.
std::string Window(DataWaitAdvisor& advisor, int64_t period, double wait_seconds) {
  std::string advice;
  for (int64_t step = 0; step < DataWaitAdvisor::kWindowSteps; ++step) {
    const auto said = advisor.AddStep(step % period == 0 ? wait_seconds : 0, 1);
    if (said.has_value()) advice = *said;
    EXPECT_EQ(said.has_value(), !advice.empty()) << "only at the end of a window";
  }
  return advice;
}

TEST(DataWaitAdvice, AdvisesThreadsWhenEveryStepWaits) {
  DataWaitAdvisor advisor(2, 3);
  EXPECT_EQ(Window(advisor, 1, 0.2),
            "20% of the last 50 steps' time was spent waiting for data, in 50 of them: samples are read too slowly; "
            "raise data.loader_threads from 3 to 6");
}

TEST(DataWaitAdvice, AdvisesStepsInMemoryWhenFewStepsWaitLong) {
  DataWaitAdvisor advisor(2, 1);
  EXPECT_THAT(Window(advisor, 10, 0.9), HasSubstr("raise data.prefetch_steps from 2 to 4"));
}

TEST(DataWaitAdvice, SaysNothingUpToFivePerCent) {
  DataWaitAdvisor advisor(2, 1);
  EXPECT_EQ(Window(advisor, 1, 0.049), "");
}

TEST(DataWaitAdvice, RepeatsItselfOnlyWhenItGetsMuchWorse) {
  DataWaitAdvisor advisor(2, 1);
  EXPECT_NE(Window(advisor, 1, 0.10), "");
  EXPECT_EQ(Window(advisor, 1, 0.15), "");
  EXPECT_NE(Window(advisor, 1, 0.21), "");
}

}  // namespace
}  // namespace muster
