#include "worker/agent/rank_supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/rpc/proto_time.h"
#include "tests/support/loop_thread.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

using testing::HasSubstr;

// The ranks are shell scripts: what rank R does is the R-th of them.
class RankSupervisorTest : public testing::Test {
 protected:
  ~RankSupervisorTest() override {
    loop_.Do([this] {
      supervisor_.reset();
      spool_.reset();
      watcher_.reset();
    });
  }

  void Begin(const std::vector<std::string>& scripts) {
    std::string program = "#!/bin/sh\ncase \"$1\" in\n";
    for (size_t rank = 0; rank < scripts.size(); ++rank) {
      absl::StrAppend(&program, "*.", rank, "/assignment.binpb) ", scripts[rank], ";;\n");
    }
    RankCommandOptions command;
    command.program = directory_.Put("muster-rank", program + "esac\n");
    chmod(command.program.c_str(), 0755);
    command.state_dir = directory_.path();
    SupervisorEvents events;
    events.on_ended = [](const RankKey&, const std::string&) {};
    events.on_change = [this] { ++changes_; };
    events.on_forgotten = [this](const RankKey& rank) { forgotten_.push_back(rank); };
    loop_.Do([&] {
      watcher_ = std::make_unique<FdWatcher>(loop_.loop());
      spool_ = std::make_unique<LogSpool>(LogSpoolOptions{.directory = directory_.File("logs")});
      supervisor_ =
          std::make_unique<RankSupervisor>(loop_.loop(), clock_.get(), watcher_.get(), spool_.get(), command, events);
      supervisor_->BeginSession();
    });
  }

  void Desire(int64_t generation, int64_t attempt, int64_t ranks, v1::AssignmentAction action = v1::RUN,
              absl::Duration grace = absl::Seconds(30)) {
    v1::Desired desired;
    desired.set_generation(generation);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      v1::Assignment& assignment = *desired.add_assignments();
      assignment.set_job_id("job-1");
      assignment.set_attempt(attempt);
      assignment.set_rank(rank);
      assignment.set_device(rank);
      assignment.set_action(action);
      *assignment.mutable_stop_grace() = ToProto(grace);
    }
    loop_.Do([&] { supervisor_->SetDesired(desired); });
  }

  bool AwaitOutput(int64_t attempt, int64_t rank, const std::string& text) {
    return loop_.Await([this, attempt, rank, text] {
      return spool_->Tail({"job-1", attempt, rank}, 0).value_or("").find(text) != std::string::npos;
    });
  }
  bool AwaitDead() {
    return loop_.Await([this] { return supervisor_->living() == 0; });
  }
  std::vector<v1::ObservedRank> Observe() {
    std::vector<v1::ObservedRank> ranks;
    loop_.Do([&] { ranks = supervisor_->Observe(); });
    return ranks;
  }
  void Acknowledge(const std::vector<v1::ObservedRank>& ranks) {
    v1::ExitsAcknowledged acknowledged;
    for (const v1::ObservedRank& rank : ranks) *acknowledged.add_ranks() = rank;
    loop_.Do([&] { supervisor_->Acknowledge(acknowledged); });
  }

  const std::unique_ptr<Clock> clock_ = MakeSystemClock();
  TemporaryDirectory directory_;
  LoopThread loop_{clock_.get()};
  int changes_ = 0;
  std::vector<RankKey> forgotten_;
  std::unique_ptr<FdWatcher> watcher_;
  std::unique_ptr<LogSpool> spool_;
  std::unique_ptr<RankSupervisor> supervisor_;
};

constexpr char kRunForEver[] = "echo up; exec sleep 1000";
constexpr char kSaveOnStop[] = "trap 'kill $!; echo saved; exit 10' TERM; sleep 1000 & echo up; wait";

TEST_F(RankSupervisorTest, ReportsExitCodeAndLastLinesUntilAcknowledged) {
  Begin({"echo hello; echo 'muster-rank: error: no data' >&2; exit 20"});
  Desire(1, 1, 1);
  ASSERT_TRUE(AwaitDead());
  std::vector<v1::ObservedRank> ranks = Observe();
  ASSERT_EQ(ranks.size(), 1u);
  EXPECT_EQ(ranks[0].phase(), v1::RANK_EXITED);
  EXPECT_EQ(ranks[0].exit().kind(), v1::EXIT_USER_ERROR);
  EXPECT_EQ(ranks[0].exit().exit_code(), 20);
  EXPECT_EQ(ranks[0].exit().message(), "no data");
  ASSERT_EQ(ranks[0].exit().last_lines_size(), 2);
  EXPECT_EQ(ranks[0].exit().last_lines(0), "hello");

  Desire(1, 1, 1);  // repeated: it does not run again
  EXPECT_EQ(Observe().size(), 1u);
  EXPECT_GT(changes_, 0);
  Acknowledge(ranks);
  EXPECT_TRUE(Observe().empty());
  EXPECT_EQ(forgotten_.size(), 1u);
  Desire(1, 1, 1);  // and not after the acknowledgement either
  loop_.Do([&] { EXPECT_EQ(supervisor_->living(), 0); });
}

TEST_F(RankSupervisorTest, ReportsTheMostMemoryThatARankHadAlsoAfterItsEnd) {
  // It holds 96 MiB for a moment only, and no sample need fall in it.
  Begin({"exec dd if=/dev/zero of=/dev/null bs=96M count=1"});
  Desire(1, 1, 1);
  ASSERT_TRUE(AwaitDead());
  EXPECT_GE(Observe()[0].resident_bytes(), int64_t{96} << 20);
  EXPECT_LT(Observe()[0].resident_bytes(), int64_t{128} << 20);
}

TEST_F(RankSupervisorTest, KillsTheRestOfAGangAtOnce) {
  Begin({kRunForEver, kRunForEver, "read line < '" + directory_.File("fifo") + "'; kill -KILL $$"});
  ASSERT_EQ(mkfifo(directory_.File("fifo").c_str(), 0600), 0);
  Desire(1, 1, 3);
  ASSERT_TRUE(AwaitOutput(1, 0, "up") && AwaitOutput(1, 1, "up"));
  directory_.Put("fifo", "die\n");
  ASSERT_TRUE(AwaitDead());
  const std::vector<v1::ObservedRank> ranks = Observe();
  EXPECT_EQ(ranks[2].exit().kind(), v1::EXIT_CRASHED);
  EXPECT_EQ(ranks[2].exit().signal(), SIGKILL);
  for (const int rank : {0, 1}) {
    EXPECT_EQ(ranks[rank].exit().kind(), v1::EXIT_KILLED);
    EXPECT_THAT(ranks[rank].exit().message(), HasSubstr("rank 2 of its gang failed"));
  }
}

TEST_F(RankSupervisorTest, ARankThatCompletesLeavesItsGangAlone) {
  Begin({"exit 0", kRunForEver});
  Desire(1, 1, 2);
  ASSERT_TRUE(loop_.Await([this] { return supervisor_->living() == 1; }));
  ASSERT_TRUE(AwaitOutput(1, 1, "up"));
  loop_.Do([&] { EXPECT_EQ(supervisor_->living(), 1); });
}

TEST_F(RankSupervisorTest, StopsWithSigtermSoThatRanksCanSave) {
  Begin({kSaveOnStop});
  Desire(1, 1, 1);
  ASSERT_TRUE(AwaitOutput(1, 0, "up"));
  Desire(2, 1, 1, v1::STOP);
  ASSERT_TRUE(AwaitDead());
  EXPECT_EQ(Observe()[0].exit().kind(), v1::EXIT_STOPPED);
  EXPECT_TRUE(AwaitOutput(1, 0, "saved"));
}

TEST_F(RankSupervisorTest, KillsWhatDoesNotStopWithinItsGrace) {
  Begin({"trap '' TERM; echo up; sleep 1000 & wait; sleep 1000"});
  Desire(1, 1, 1, v1::RUN, absl::Milliseconds(20));
  ASSERT_TRUE(AwaitOutput(1, 0, "up"));
  Desire(2, 1, 1, v1::STOP, absl::Milliseconds(20));
  ASSERT_TRUE(AwaitDead());
  EXPECT_EQ(Observe()[0].exit().kind(), v1::EXIT_KILLED);
  EXPECT_THAT(Observe()[0].exit().message(), HasSubstr("did not within 20ms"));
}

TEST_F(RankSupervisorTest, IgnoresAnOlderDesiredOfTheSession) {
  Begin({kRunForEver});
  Desire(5, 1, 1);
  ASSERT_TRUE(AwaitOutput(1, 0, "up"));
  Desire(4, 1, 0);  // late: it would stop everything
  loop_.Do([&] { EXPECT_EQ(supervisor_->generation(), 5); });
  EXPECT_EQ(Observe()[0].phase(), v1::RANK_STARTING);
  loop_.Do([&] { supervisor_->BeginSession(); });  // a new session may count from its own beginning
  Desire(1, 1, 0);
  EXPECT_TRUE(AwaitDead());
}

TEST_F(RankSupervisorTest, ReplacesAnAttemptByTheNextOnTheSameDevice) {
  Begin({kRunForEver});
  Desire(1, 1, 1);
  ASSERT_TRUE(AwaitOutput(1, 0, "up"));
  Desire(2, 2, 1);
  ASSERT_TRUE(AwaitOutput(2, 0, "up"));
  const std::vector<v1::ObservedRank> ranks = Observe();
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].exit().kind(), v1::EXIT_KILLED);
  EXPECT_THAT(ranks[0].exit().message(), HasSubstr("attempt 2 took its place"));
  EXPECT_NE(ranks[1].phase(), v1::RANK_EXITED);
}

TEST_F(RankSupervisorTest, SaysWhenARankCannotBeStarted) {
  Begin({"exit 0"});
  std::filesystem::remove(directory_.File("muster-rank"));
  Desire(1, 1, 1);
  const std::vector<v1::ObservedRank> ranks = Observe();
  ASSERT_EQ(ranks.size(), 1u);
  EXPECT_EQ(ranks[0].exit().kind(), v1::EXIT_NOT_STARTED);
  EXPECT_THAT(ranks[0].exit().message(), HasSubstr("muster-rank"));
}

TEST_F(RankSupervisorTest, FollowsWhatRanksReport) {
  Begin({kRunForEver});
  Desire(1, 1, 1);
  v1::RankReport report;
  report.set_job_id("job-1");
  report.set_attempt(1);
  bool taken = false;
  loop_.Do([&] { taken = supervisor_->OnReport(report); });
  EXPECT_TRUE(taken);
  EXPECT_EQ(Observe()[0].phase(), v1::RANK_JOINING);
  report.mutable_step()->set_step(12);
  loop_.Do([&] { taken = supervisor_->OnReport(report); });
  EXPECT_EQ(Observe()[0].phase(), v1::RANK_TRAINING);
  EXPECT_EQ(Observe()[0].step(), 12);
  report.set_attempt(2);  // of a rank that does not live here
  loop_.Do([&] { taken = supervisor_->OnReport(report); });
  EXPECT_FALSE(taken);
}

TEST_F(RankSupervisorTest, KillAllSaysWhy) {
  Begin({kRunForEver, kSaveOnStop});
  Desire(1, 1, 2);
  ASSERT_TRUE(AwaitOutput(1, 0, "up") && AwaitOutput(1, 1, "up"));
  loop_.Do([&] { supervisor_->KillAll("no contact with the coordinator for 1m"); });
  ASSERT_TRUE(AwaitDead());
  for (const v1::ObservedRank& rank : Observe()) {
    EXPECT_EQ(rank.exit().message(), "killed: no contact with the coordinator for 1m");
  }
}

TEST_F(RankSupervisorTest, StopAllStartsNothingMore) {
  Begin({kSaveOnStop});
  Desire(1, 1, 1);
  ASSERT_TRUE(AwaitOutput(1, 0, "up"));
  loop_.Do([&] { supervisor_->StopAll(absl::Seconds(30)); });
  ASSERT_TRUE(AwaitDead());
  EXPECT_EQ(Observe()[0].exit().kind(), v1::EXIT_STOPPED);
  Desire(2, 2, 1);
  EXPECT_EQ(Observe().size(), 1u);
}

}  // namespace
}  // namespace muster
