#include "worker/agent/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace muster {
namespace {

ChildCommand Shell(const std::string& script) {
  ChildCommand command;
  command.arguments = {"/bin/sh", "-c", script};
  return command;
}

bool Readable(int fd, int milliseconds = 30000) {
  pollfd poll_fd{fd, POLLIN, 0};
  return poll(&poll_fd, 1, milliseconds) == 1;
}

// All that the child writes until it closes its output.
std::string ReadAll(const ChildProcess& child) {
  std::string text;
  char buffer[4096];
  while (Readable(child.output.get())) {
    const ssize_t count = read(child.output.get(), buffer, sizeof(buffer));
    if (count <= 0) return text;
    text.append(buffer, static_cast<size_t>(count));
  }
  return text;
}

TEST(ChildProcessTest, TellsTheExitCode) {
  const auto child = StartChild(Shell("exit 20"));
  ASSERT_TRUE(child.ok()) << child.status();
  const auto end = ReapChild(*child);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->exit_code, 20);
  EXPECT_EQ(end->signal, 0);
}

TEST(ChildProcessTest, TellsTheSignalThatEndedIt) {
  const auto child = StartChild(Shell("kill -SEGV $$"));
  ASSERT_TRUE(child.ok()) << child.status();
  const auto end = ReapChild(*child);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->exit_code, -1);
  EXPECT_EQ(end->signal, SIGSEGV);
}

TEST(ChildProcessTest, TellsTheMostMemoryThatItHad) {
  const auto child = StartChild(Shell("exec dd if=/dev/zero of=/dev/null bs=96M count=1 2>/dev/null"));
  ASSERT_TRUE(child.ok()) << child.status();
  const auto end = ReapChild(*child);
  ASSERT_TRUE(end.ok());
  EXPECT_GE(end->peak_resident_bytes, int64_t{96} << 20);
  EXPECT_LT(end->peak_resident_bytes, int64_t{128} << 20);
}

// The kernel counts what was resident before the exec, which was ours.
TEST(ChildProcessTest, DoesNotTellOurMemoryForThatOfTheChild) {
  const std::string ours(96 << 20, 'x');
  const auto child = StartChild(Shell("exit 0"));
  ASSERT_TRUE(child.ok()) << child.status();
  const auto end = ReapChild(*child);
  ASSERT_TRUE(end.ok());
  EXPECT_LT(end->peak_resident_bytes, static_cast<int64_t>(ours.size()));
}

TEST(ChildProcessTest, CarriesStdoutStderrAndTheEnvironment) {
  ChildCommand command = Shell("echo out $MUSTER_TEST_VALUE; echo err >&2");
  command.environment = {{"MUSTER_TEST_VALUE", "42"}};
  const auto child = StartChild(command);
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(ReadAll(*child), "out 42\nerr\n");
  ASSERT_TRUE(ReapChild(*child).ok());
}

TEST(ChildProcessTest, RefusesAProgramThatIsNotThere) {
  ChildCommand command;
  command.arguments = {"/nonexistent/muster-rank"};
  const auto child = StartChild(command);
  EXPECT_EQ(child.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(child.status().message()), testing::HasSubstr("/nonexistent/muster-rank"));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // nothing is left to reap
}

TEST(ChildProcessTest, LimitsMemory) {
  ChildCommand command = Shell("ulimit -d");
  command.data_limit_bytes = 64 << 20;
  const auto child = StartChild(command);
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(ReadAll(*child), "65536\n");  // in KiB
  ASSERT_TRUE(ReapChild(*child).ok());
}

TEST(ChildProcessTest, KillsTheWholeProcessGroup) {
  // The grandchild holds the pipe open: only its death lets ReadAll return.
  const auto child = StartChild(Shell("sleep 1000 & echo ready; wait"));
  ASSERT_TRUE(child.ok()) << child.status();
  ASSERT_TRUE(Readable(child->output.get()));
  SignalChild(*child, SIGKILL);
  EXPECT_EQ(ReadAll(*child), "ready\n");
  ASSERT_TRUE(ReapChild(*child).ok());
}

// Sent to the group as well it would come to the child twice, and to a rank that means "at once, without a checkpoint".
TEST(ChildProcessTest, SendsOtherSignalsToTheChildOnly) {
  const auto child = StartChild(
      Shell("trap 'echo child; exit 10' TERM; (trap 'echo group' TERM; echo ready; sleep 1000 & wait; wait) & "
            "wait"));
  ASSERT_TRUE(child.ok()) << child.status();
  ASSERT_TRUE(Readable(child->output.get()));
  SignalChild(*child, SIGTERM);
  ASSERT_TRUE(Readable(child->pidfd.get()));
  SignalChild(*child, SIGKILL);
  EXPECT_EQ(ReadAll(*child), "ready\nchild\n");
  EXPECT_EQ(ReapChild(*child)->exit_code, 10);
}

TEST(ChildProcessTest, DiesWithTheProcessThatStartedIt) {
  int from_child[2];
  ASSERT_EQ(pipe(from_child), 0);
  const pid_t agent = fork();
  ASSERT_GE(agent, 0);
  if (agent == 0) {
    const auto child = StartChild(Shell("exec sleep 1000"));
    const pid_t pid = child.ok() ? child->pid : -1;
    if (write(from_child[1], &pid, sizeof(pid)) != sizeof(pid)) _exit(1);
    while (true) pause();
  }
  pid_t rank = -1;
  ASSERT_EQ(read(from_child[0], &rank, sizeof(rank)), static_cast<ssize_t>(sizeof(rank)));
  ASSERT_GT(rank, 0);
  const int pidfd = static_cast<int>(syscall(434 /* pidfd_open */, rank, 0));
  ASSERT_GE(pidfd, 0);
  kill(agent, SIGKILL);
  ASSERT_EQ(waitpid(agent, nullptr, 0), agent);
  EXPECT_TRUE(Readable(pidfd)) << "the rank outlived its agent";
  close(pidfd);
}

}  // namespace
}  // namespace muster
