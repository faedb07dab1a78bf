// The program as an operator runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/temporary_directory.h"
#include "worker/agent/child_process.h"

namespace muster {
namespace {

using testing::HasSubstr;

struct Outcome {
  int exit_code = -1;
  std::string output;
};

Outcome RunWorker(const std::string& arguments) {
  Outcome outcome;
  FILE* pipe =
      popen(absl::StrCat("env -u MUSTER_COORDINATOR ", MUSTER_WORKER_PROGRAM, " ", arguments, " 2>&1").c_str(), "r");
  char buffer[4096];
  while (const size_t count = fread(buffer, 1, sizeof(buffer), pipe)) outcome.output.append(buffer, count);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

TEST(WorkerProgramTest, WrongFlagsExitWithTwoAndNameTheFlag) {
  const struct {
    std::string arguments;
    std::string named;
  } cases[] = {
      {"", "--coordinator"},
      {"--coordinator nowhere", "--coordinator"},
      {"--coordinator 127.0.0.1:7070 --slots 0", "--slots"},
      {"--coordinator 127.0.0.1:7070 --slot-memory 1MiB", "--slot-memory"},
      {"--coordinator 127.0.0.1:7070 --slot-memory many", "--slot-memory"},
      {"--coordinator 127.0.0.1:7070 --http 99", "--http"},
      {"--coordinator 127.0.0.1:7070 --data-root /nonexistent", "--data-root"},
      {"--coordinator 127.0.0.1:7070 --rank-program /nonexistent", "--rank-program"},
      {"--coordinator 127.0.0.1:7070 --log-level loud", "--log-level"},
      {"--no-such-flag", "--no-such-flag"},
  };
  for (const auto& wrong : cases) {
    const Outcome outcome = RunWorker(wrong.arguments);
    EXPECT_EQ(outcome.exit_code, 2) << wrong.arguments << "\n" << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(wrong.named));
  }
}

// A job file's memory_per_rank is read by the same words.
TEST(WorkerProgramTest, ReadsSizesAsJobFilesDo) {
  const std::string too_few = "--coordinator 127.0.0.1:7070 --slot-memory ";
  EXPECT_THAT(RunWorker(too_few + "1MB").output, HasSubstr("--slot-memory: 1000000 bytes are too few"));
  EXPECT_THAT(RunWorker(too_few + "1MiB").output, HasSubstr("--slot-memory: 1048576 bytes are too few"));
  EXPECT_THAT(RunWorker(too_few + "many").output, HasSubstr("--slot-memory: \"many\" is not a size: write bytes, or"));
}

TEST(WorkerProgramTest, RefusesSlotsThatTheHostHasNoMemoryFor) {
  const Outcome slots = RunWorker("--coordinator 127.0.0.1:7070 --slots 1024 --slot-memory 100GiB");
  EXPECT_EQ(slots.exit_code, 2);
  EXPECT_THAT(slots.output,
              HasSubstr("--slots, --slot-memory: 1024 of 100.00 GiB are 102400.00 GiB, but this host has "));
  EXPECT_THAT(slots.output, HasSubstr(" would fit\n"));
  EXPECT_EQ(RunWorker("--coordinator 127.0.0.1:7070 --slots 2 --slot-memory 9000000TB").exit_code, 2);  // no overflow
}

TEST(WorkerProgramTest, SaysItsVersionHelpAndMetrics) {
  EXPECT_THAT(RunWorker("--version").output, HasSubstr("muster-worker "));
  EXPECT_EQ(RunWorker("--help").exit_code, 0);
  EXPECT_THAT(RunWorker("--print-metrics-docs").output, HasSubstr("`muster_job_loss`"));
}

// Without a coordinator it says so in one line, serves its pages, keeps trying, and ends on SIGTERM.
TEST(WorkerProgramTest, WaitsForItsCoordinatorAndEndsCleanly) {
  TemporaryDirectory directory;
  ChildCommand command;
  command.arguments = {MUSTER_WORKER_PROGRAM, "--coordinator=127.0.0.1:1",      "--name=worker-0", "--http=127.0.0.1:0",
                       "--slots=1",           "--state-dir=" + directory.path()};
  const auto child = StartChild(command);
  ASSERT_TRUE(child.ok()) << child.status();
  std::string text;
  char buffer[4096];
  pollfd readable{child->output.get(), POLLIN, 0};
  while (text.find("no session with the coordinator at 127.0.0.1:1") == std::string::npos) {
    ASSERT_EQ(poll(&readable, 1, 30000), 1) << text;
    const ssize_t count = read(child->output.get(), buffer, sizeof(buffer));
    ASSERT_GT(count, 0) << text;
    text.append(buffer, static_cast<size_t>(count));
  }
  EXPECT_THAT(text, HasSubstr("muster-worker worker-0: http on 127.0.0.1:"));
  EXPECT_THAT(text, HasSubstr("1 CPU slot\n"));
  SignalChild(*child, SIGTERM);
  const auto end = ReapChild(*child);
  EXPECT_EQ(end->exit_code, 0);
}

}  // namespace
}  // namespace muster
