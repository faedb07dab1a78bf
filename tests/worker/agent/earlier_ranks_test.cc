#include "worker/agent/earlier_ranks.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "common/base/file_lock.h"
#include "tests/support/temporary_directory.h"
#include "worker/agent/rank_command.h"

namespace muster {
namespace {

class EarlierRanksTest : public testing::Test {
 protected:
  // As a rank of an agent that died has left it.
  std::string Leave(int64_t rank) {
    v1::Assignment assignment;
    assignment.set_job_id("job-1");
    assignment.set_attempt(2);
    assignment.set_rank(rank);
    const std::string directory = RankDirectory(state_.path(), RankKey::Of(assignment));
    std::filesystem::create_directories(directory);
    Put(directory + "/assignment.binpb", assignment.SerializeAsString());
    return directory;
  }
  void Put(const std::string& path, const std::string& contents) {
    state_.Put(path.substr(state_.path().size() + 1), contents);
  }

  TemporaryDirectory state_;
};

TEST_F(EarlierRanksTest, AnEmptyStateHasNone) {
  const auto found = FindEarlierRanks(state_.path());
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->ended.empty() && found->living.empty());
}

TEST_F(EarlierRanksTest, ARankWithoutARecordedExitDiedWithItsAgent) {
  Put(Leave(0) + "/lock", "4242");
  const auto found = FindEarlierRanks(state_.path());
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->ended.size(), 1u);
  EXPECT_EQ(found->ended[0].attempt(), 2);
  EXPECT_EQ(found->ended[0].phase(), v1::RANK_EXITED);
  EXPECT_EQ(found->ended[0].exit().kind(), v1::EXIT_INFRASTRUCTURE);
}

TEST_F(EarlierRanksTest, ARecordedExitIsReportedAsItWas) {
  v1::RankExit exit;
  exit.set_kind(v1::EXIT_COMPLETED);
  Put(Leave(0) + "/exit.binpb", exit.SerializeAsString());
  const auto found = FindEarlierRanks(state_.path());
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->ended.size(), 1u);
  EXPECT_EQ(found->ended[0].exit().kind(), v1::EXIT_COMPLETED);
}

TEST_F(EarlierRanksTest, ALockThatIsHeldMeansAlive) {
  const std::string lock_file = Leave(0) + "/lock";
  std::optional<FileLock> lock(*FileLock::Acquire(lock_file));
  auto found = FindEarlierRanks(state_.path());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->ended.empty());
  ASSERT_EQ(found->living.size(), 1u);
  EXPECT_EQ(found->living[0], lock_file);
  lock.reset();
  found = FindEarlierRanks(state_.path());
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->ended.size(), 1u);
}

TEST_F(EarlierRanksTest, KillsAHolderThatWillNotDie) {
  const std::string lock_file = Leave(0) + "/lock";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t holder = fork();
  if (holder == 0) {
    const auto lock = FileLock::Acquire(lock_file);
    if (write(ready[1], "x", 1) != 1 || !lock.ok()) _exit(1);
    while (true) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  KillLockHolder(lock_file);
  int status = 0;
  ASSERT_EQ(waitpid(holder, &status, 0), holder);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_TRUE(FindEarlierRanks(state_.path())->living.empty());
}

TEST_F(EarlierRanksTest, ForgetsADirectoryFromWhichNothingWasStarted) {
  const std::string directory = state_.File("ranks/job-1.1.0");
  std::filesystem::create_directories(directory);
  ASSERT_TRUE(FindEarlierRanks(state_.path()).ok());
  EXPECT_FALSE(std::filesystem::exists(directory));
}

}  // namespace
}  // namespace muster
