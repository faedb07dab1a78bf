#include "worker/agent/exit_cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace muster {
namespace {

ChildEnd Code(int code) { return ChildEnd{code, 0}; }
ChildEnd Signal(int signal) { return ChildEnd{-1, signal}; }

TEST(ExitCauseTest, MapsExitCodesToKinds) {
  EXPECT_EQ(ExplainExit(Code(0), {}).kind(), v1::EXIT_COMPLETED);
  EXPECT_EQ(ExplainExit(Code(10), {}).kind(), v1::EXIT_STOPPED);
  EXPECT_EQ(ExplainExit(Code(20), {}).kind(), v1::EXIT_USER_ERROR);
  EXPECT_EQ(ExplainExit(Code(30), {}).kind(), v1::EXIT_INFRASTRUCTURE);
  EXPECT_EQ(ExplainExit(Code(40), {}).kind(), v1::EXIT_OUT_OF_MEMORY);
  EXPECT_EQ(ExplainExit(Code(1), {}).kind(), v1::EXIT_CRASHED);
}

TEST(ExitCauseTest, QuotesTheRanksOwnLastErrorLine) {
  ExitContext context;
  context.last_lines = {"step 1", "muster-rank: error: first", "muster-rank: error: data/train.bin is missing", "bye"};
  const v1::RankExit exit = ExplainExit(Code(20), context);
  EXPECT_EQ(exit.message(), "data/train.bin is missing");
  EXPECT_EQ(exit.last_lines_size(), 4);
}

TEST(ExitCauseTest, FallsBackToWhatTheRankReported) {
  ExitContext context;
  context.reported.set_message("loss is not finite at step 3");
  EXPECT_EQ(ExplainExit(Code(20), context).message(), "loss is not finite at step 3");
}

TEST(ExitCauseTest, ASignalFromElsewhereIsACrashThatIsNamed) {
  const v1::RankExit exit = ExplainExit(Signal(SIGKILL), {});
  EXPECT_EQ(exit.kind(), v1::EXIT_CRASHED);
  EXPECT_EQ(exit.signal(), SIGKILL);
  EXPECT_EQ(exit.exit_code(), -1);
  EXPECT_EQ(exit.message(), "ended by signal 9 (Killed)");
}

TEST(ExitCauseTest, OurOwnKillSaysWhy) {
  ExitContext context;
  context.killed_because = "rank 2 of its gang failed";
  const v1::RankExit exit = ExplainExit(Signal(SIGKILL), context);
  EXPECT_EQ(exit.kind(), v1::EXIT_KILLED);
  EXPECT_EQ(exit.message(), "killed: rank 2 of its gang failed");
}

TEST(ExitCauseTest, ARankThatFoundItsPeerGoneBeforeOurKillKeepsItsOwnCause) {
  ExitContext context;
  context.killed_because = "rank 2 of its gang failed";
  EXPECT_EQ(ExplainExit(Code(30), context).kind(), v1::EXIT_INFRASTRUCTURE);
}

TEST(ExitCauseTest, ARankThatEndsToRewindSaysWhereTo) {
  ExitContext context;
  context.reported.set_message("step 81: loss 9 is above 3");
  context.reported.mutable_rewind()->set_next_sample(648);
  const v1::RankExit exit = ExplainExit(Code(11), context);
  EXPECT_EQ(exit.kind(), v1::EXIT_REWIND);
  EXPECT_EQ(exit.rewind().next_sample(), 648);
  EXPECT_EQ(exit.message(), "step 81: loss 9 is above 3");
  EXPECT_FALSE(ExplainExit(Code(30), context).has_rewind());
}

TEST(ExitCauseTest, RecognisesTheKernelsMemoryKiller) {
  ExitContext context;
  context.kernel_killed_for_memory = true;
  EXPECT_EQ(ExplainExit(Signal(SIGKILL), context).kind(), v1::EXIT_OUT_OF_MEMORY);
  EXPECT_EQ(ExplainExit(Signal(SIGSEGV), context).kind(), v1::EXIT_CRASHED);
}

TEST(ExitCauseTest, SigtermBeforeItWasHandledIsAStop) {
  ExitContext context;
  context.asked_to_stop = true;
  EXPECT_EQ(ExplainExit(Signal(SIGTERM), context).kind(), v1::EXIT_STOPPED);
  EXPECT_EQ(ExplainExit(Signal(SIGTERM), {}).kind(), v1::EXIT_CRASHED);
}

}  // namespace
}  // namespace muster
