// The guard catches what it should: a test that trusts it would otherwise pass for ever.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/support/allocation_guard_run.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

class AllocationGuardTest : public testing::Test {
 protected:
  void SetUp() override { options_.report = directory_.File("report"); }

  // The wait status of the probe, run under the guard.
  int Probe(const std::string& what) {
    std::vector<std::string> environment = AllocationGuardEnvironment(options_);
    std::vector<char*> variables;
    for (std::string& variable : environment) variables.push_back(variable.data());
    variables.push_back(nullptr);
    std::string program = MUSTER_ALLOCATION_PROBE, argument = what;
    char* arguments[] = {program.data(), argument.data(), nullptr};
    // The guard's last words of an enforced finding are not this test's.
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    pid_t child = -1;
    EXPECT_EQ(posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, variables.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
  }

  std::vector<LargeAllocation> Report() { return ReadAllocationReport(options_.report); }

  TemporaryDirectory directory_;
  AllocationGuardOptions options_;
};

TEST_F(AllocationGuardTest, FindsEveryKindOfLargeAllocationAndItsCaller) {
  size_t found = 0;
  for (const std::string what : {"malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "new", "mmap"}) {
    EXPECT_EQ(Probe(what), 0) << what << ": without enforcement the program goes on";
    const auto report = Report();
    ASSERT_EQ(report.size(), ++found) << what;
    const LargeAllocation& finding = report.back();
    EXPECT_FALSE(finding.allowed);
    EXPECT_EQ(finding.function, what == "new" ? "malloc" : what);
    EXPECT_EQ(finding.bytes, 2 << 20);
    EXPECT_EQ(finding.program, "allocation_probe");
    EXPECT_THAT(finding.frames, testing::StartsWith("allocation_probe")) << "not libstdc++, not the guard";
  }
}

TEST_F(AllocationGuardTest, PassesWhatIsSmallOrOnlyReserved) {
  EXPECT_EQ(Probe("small"), 0);
  EXPECT_EQ(Probe("reservation"), 0);
  EXPECT_TRUE(Report().empty());
}

TEST_F(AllocationGuardTest, PassesAListedNameAndRecordsIt) {
  options_.enforce = true;
  EXPECT_EQ(Probe("arena"), 0);
  const auto report = Report();
  ASSERT_EQ(report.size(), 1u);
  EXPECT_TRUE(report[0].allowed);
  EXPECT_EQ(report[0].name, "arena");
  EXPECT_EQ(report[0].bytes, 2 << 20);
}

TEST_F(AllocationGuardTest, ANameThatIsNotListedAllowsNothing) {
  EXPECT_EQ(Probe("unknown-name"), 0);
  EXPECT_EQ(Probe("after-scope"), 0);
  const auto report = Report();
  ASSERT_EQ(report.size(), 2u);
  EXPECT_FALSE(report[0].allowed);
  EXPECT_EQ(report[0].name, "nobody-listed-me");
  EXPECT_FALSE(report[1].allowed);
  EXPECT_EQ(report[1].name, "-");
}

TEST_F(AllocationGuardTest, EnforcementEndsTheProcessAtItsFirstFinding) {
  options_.enforce = true;
  for (const char* what : {"malloc", "new", "mmap"}) {
    const int status = Probe(what);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << what << ": " << status;
  }
  EXPECT_EQ(Probe("small"), 0);
}

TEST_F(AllocationGuardTest, FramesAllowUpToTheirBoundOnly) {
  options_.allowances = directory_.Put("allowances", "frame allocation_probe 3000000 the probe itself\n");
  EXPECT_EQ(Probe("malloc"), 0);
  directory_.Put("allowances", "frame allocation_probe 2000000 the probe itself\n");
  EXPECT_EQ(Probe("malloc"), 0);
  directory_.Put("allowances", "frame libsomethingelse.so - another library\n");
  EXPECT_EQ(Probe("malloc"), 0);
  const auto report = Report();
  ASSERT_EQ(report.size(), 3u);
  EXPECT_TRUE(report[0].allowed);
  EXPECT_FALSE(report[1].allowed);
  EXPECT_FALSE(report[2].allowed);
}

TEST_F(AllocationGuardTest, ABadListIsRefused) {
  options_.allowances = directory_.Put("allowances", "name arena plenty\n");
  EXPECT_TRUE(WIFSIGNALED(Probe("small")));
}

TEST_F(AllocationGuardTest, WatchesOnlyTheProgramItIsAskedTo) {
  options_.program = "muster-rank";
  EXPECT_EQ(Probe("malloc"), 0);
  EXPECT_TRUE(Report().empty());
  options_.program = "allocation_probe";
  EXPECT_EQ(Probe("malloc"), 0);
  EXPECT_EQ(Report().size(), 1u);
}

}  // namespace
}  // namespace muster
