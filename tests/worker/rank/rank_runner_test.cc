// A rank of a job of one, in this process, between a fake coordinator and a fake agent.
#include "worker/rank/rank_runner.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/exit_codes.h"
#include "common/base/file_lock.h"
#include "common/base/lease_file.h"
#include "tests/support/temporary_directory.h"
#include "tests/worker/rank/fake_rendezvous.h"
#include "tests/worker/rank/tiny_job.h"

namespace muster {
namespace {

using testing::HasSubstr;

class RecordingAgent : public v1::RankService::Service {
 public:
  explicit RecordingAgent(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~RecordingAgent() override { server_->Shutdown(); }

  // The reports of one kind so far.
  std::vector<v1::RankReport> Of(v1::RankReport::ReportCase kind) {
    absl::MutexLock lock(&mutex_);
    std::vector<v1::RankReport> found;
    for (const v1::RankReport& report : reports_) {
      if (report.report_case() == kind) found.push_back(report);
    }
    return found;
  }
  void AwaitStep(int64_t step) {
    absl::MutexLock lock(&mutex_);
    const auto seen = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !reports_.empty() && reports_.back().step().step() >= step;
    };
    mutex_.AwaitWithTimeout(absl::Condition(&seen), absl::Seconds(30));
  }

 private:
  grpc::Status Report(grpc::ServerContext* context, grpc::ServerReader<v1::RankReport>* reader,
                      v1::ReportSummary* summary) override {
    v1::RankReport report;
    while (reader->Read(&report)) {
      absl::MutexLock lock(&mutex_);
      reports_.push_back(report);
    }
    return grpc::Status::OK;
  }

  absl::Mutex mutex_;
  std::vector<v1::RankReport> reports_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

class RankRunnerTest : public testing::Test {
 protected:
  RankOptions Options(int64_t steps = 8) {
    v1::Assignment assignment;
    assignment.set_job_id("job-1");
    assignment.set_attempt(2);
    *assignment.mutable_resolved_spec() = ResolvedTinyJob(TinyJob(directory_, 1, 1, steps));
    RankOptions options;
    options.assignment_file = directory_.Put("assignment.binpb", assignment.SerializeAsString());
    options.agent = agent_address_;
    options.coordinator = coordinator_.address();
    options.data_root = directory_.path();
    options.checkpoint_root = directory_.File("checkpoints");
    std::filesystem::create_directories(options.checkpoint_root);
    options.lock_file = directory_.File("lock");
    return options;
  }
  std::string LeaseUntil(absl::Duration since_boot) {
    absl::StatusOr<LeaseStamp> stamp = LeaseStamp::Create(directory_.File("lease"));
    stamp->Set(since_boot);
    return directory_.File("lease");
  }
  // The message of the end that it reported.
  std::string FinishedMessage() {
    const auto finished = agent_.Of(v1::RankReport::kFinished);
    return finished.size() == 1 ? finished[0].finished().message() : "no end was reported";
  }

  const std::unique_ptr<Clock> clock_ = MakeSystemClock();
  TemporaryDirectory directory_;
  const std::string agent_address_ = "unix:" + directory_.File("agent.sock");
  FakeRendezvous coordinator_;
  RecordingAgent agent_{agent_address_};
};

TEST_F(RankRunnerTest, TrainsToTheEndAndTellsAboutIt) {
  RankOptions options = Options();
  options.lease_file = LeaseUntil(absl::InfiniteDuration());
  RankRunner runner(options, clock_.get());
  EXPECT_EQ(runner.Run(), kExitCompleted);

  const auto started = agent_.Of(v1::RankReport::kStarted);
  ASSERT_EQ(started.size(), 1u);
  EXPECT_GT(started[0].started().arena_bytes(), 0);
  EXPECT_EQ(started[0].started().arena_bytes(), started[0].started().planned_arena_bytes());
  EXPECT_EQ(started[0].started().used().parameters(), started[0].started().planned().parameters());
  EXPECT_EQ(started[0].started().startup_seconds().count("join"), 1u);
  EXPECT_EQ(started[0].started().fingerprint().count("instruction_set"), 1u);
  const auto steps = agent_.Of(v1::RankReport::kStep);
  ASSERT_EQ(steps.size(), 8u);
  EXPECT_TRUE(steps[0].step().leader());
  EXPECT_LT(steps[7].step().loss(), steps[0].step().loss());
  EXPECT_GT(steps[7].sequence(), steps[0].sequence());
  const auto checkpoints = agent_.Of(v1::RankReport::kCheckpoint);
  ASSERT_EQ(checkpoints.size(), 2u);
  EXPECT_EQ(checkpoints[1].checkpoint().path(), "ckpt/job-1/attempt-2/step-8");
  EXPECT_TRUE(std::filesystem::exists(options.checkpoint_root + "/ckpt/job-1/attempt-2/step-8/manifest.json"));
  EXPECT_EQ(agent_.Of(v1::RankReport::kValidation).size(), 2u);
  EXPECT_EQ(agent_.Of(v1::RankReport::kFinished)[0].finished().kind(), v1::EXIT_COMPLETED);

  std::vector<std::string> groups;
  for (const v1::JoinGroupRequest& join : coordinator_.joins()) groups.push_back(join.key().group());
  EXPECT_THAT(groups, testing::ElementsAre("world", "world/ready"));
}

TEST_F(RankRunnerTest, StopsBeforeAnyStepWhenTheLeaseHasPassed) {
  RankOptions options = Options();
  options.lease_file = LeaseUntil(clock_->SinceBoot() - absl::Seconds(5));
  RankRunner runner(options, clock_.get());
  EXPECT_EQ(runner.Run(), kExitInfrastructure);
  EXPECT_THAT(FinishedMessage(), HasSubstr("lease passed"));
  EXPECT_TRUE(agent_.Of(v1::RankReport::kStep).empty());
  EXPECT_TRUE(agent_.Of(v1::RankReport::kCheckpoint).empty());
}

TEST_F(RankRunnerTest, BadDataEndsItBeforeAnyGroupIsJoined) {
  const RankOptions options = Options();
  std::filesystem::resize_file(directory_.File("train.bin"), 100);
  RankRunner runner(options, clock_.get());
  EXPECT_EQ(runner.Run(), kExitUserError);
  EXPECT_THAT(FinishedMessage(), HasSubstr("data.train: "));
  EXPECT_THAT(FinishedMessage(), HasSubstr("train.bin"));
  EXPECT_TRUE(coordinator_.joins().empty());
}

TEST_F(RankRunnerTest, AVoteAgainstEndsItWithoutTraining) {
  const RankOptions options = Options();
  coordinator_.FailNext({absl::AbortedError("rank 3 voted against: no memory")});
  RankRunner runner(options, clock_.get());
  EXPECT_EQ(runner.Run(), kExitInfrastructure);
  EXPECT_THAT(FinishedMessage(), HasSubstr("rank 3 voted against"));
  EXPECT_TRUE(agent_.Of(v1::RankReport::kStarted).empty());
}

TEST_F(RankRunnerTest, StopsWhenAskedWithACheckpoint) {
  const RankOptions options = Options(/*steps=*/1000000);
  RankRunner runner(options, clock_.get());
  EXPECT_FALSE(RankRunner(options, clock_.get()).RequestStop());  // before training there is nothing to save
  int exit_code = -1;
  std::thread thread([&] { exit_code = runner.Run(); });
  agent_.AwaitStep(3);
  EXPECT_TRUE(runner.RequestStop());
  thread.join();
  EXPECT_EQ(exit_code, kExitStopped);
  const auto checkpoints = agent_.Of(v1::RankReport::kCheckpoint);
  const auto steps = agent_.Of(v1::RankReport::kStep);
  ASSERT_FALSE(checkpoints.empty());
  EXPECT_EQ(checkpoints.back().checkpoint().step(), steps.back().step().step());
}

TEST_F(RankRunnerTest, HoldsItsLockWhileItLives) {
  const RankOptions options = Options(/*steps=*/1000000);
  RankRunner runner(options, clock_.get());
  std::thread thread([&] { runner.Run(); });
  agent_.AwaitStep(1);
  EXPECT_TRUE(*FileLock::IsHeld(options.lock_file));
  EXPECT_TRUE(runner.RequestStop());
  thread.join();
}

}  // namespace
}  // namespace muster
