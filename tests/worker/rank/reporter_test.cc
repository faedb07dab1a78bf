#include "worker/rank/reporter.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

// An agent that reads only once it is let.
class FakeAgent : public v1::RankService::Service {
 public:
  explicit FakeAgent(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeAgent() override {
    if (!may_read_.HasBeenNotified()) may_read_.Notify();
    server_->Shutdown();
  }

  void Read() { may_read_.Notify(); }
  std::vector<v1::RankReport> received() {
    absl::MutexLock lock(&mutex_);
    return received_;
  }

 private:
  grpc::Status Report(grpc::ServerContext* context, grpc::ServerReader<v1::RankReport>* reader,
                      v1::ReportSummary* summary) override {
    may_read_.WaitForNotification();
    v1::RankReport report;
    while (reader->Read(&report)) {
      absl::MutexLock lock(&mutex_);
      received_.push_back(report);
    }
    return grpc::Status::OK;
  }

  absl::Notification may_read_;
  absl::Mutex mutex_;
  std::vector<v1::RankReport> received_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

class ReporterTest : public testing::Test {
 protected:
  ReporterTest() {
    identity_.set_job_id("job-1");
    identity_.set_attempt(3);
    identity_.set_rank(2);
  }

  static v1::RankReport Step(int64_t step) {
    v1::RankReport report;
    report.mutable_step()->set_step(step);
    return report;
  }
  static v1::RankReport Checkpoint(int64_t step) {
    v1::RankReport report;
    report.mutable_checkpoint()->set_step(step);
    return report;
  }

  TemporaryDirectory directory_;
  const std::string address_ = "unix:" + directory_.File("agent.sock");
  const std::unique_ptr<v1::RankService::Stub> stub_ =
      v1::RankService::NewStub(grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
  v1::RankReport identity_;
};

TEST_F(ReporterTest, DeliversInOrderNumberedAndNamed) {
  FakeAgent agent(address_);
  agent.Read();
  Reporter reporter(stub_.get(), identity_);
  for (int64_t step = 1; step <= 100; ++step) reporter.Send(Step(step));
  EXPECT_TRUE(reporter.Flush(absl::Seconds(30)));
  const std::vector<v1::RankReport> received = agent.received();
  ASSERT_EQ(received.size(), 101u);
  EXPECT_EQ(received[0].report_case(), v1::RankReport::REPORT_NOT_SET);  // the rank is there
  for (size_t i = 1; i < received.size(); ++i) {
    EXPECT_EQ(received[i].sequence(), static_cast<int64_t>(i));
    EXPECT_EQ(received[i].step().step(), static_cast<int64_t>(i));
    EXPECT_EQ(received[i].job_id(), "job-1");
    EXPECT_EQ(received[i].attempt(), 3);
    EXPECT_EQ(received[i].rank(), 2);
  }
}

TEST_F(ReporterTest, NeverBlocksAndEndsSoonWithoutAnAgent) {
  Reporter reporter(stub_.get(), identity_);
  for (int64_t step = 1; step <= 100000; ++step) reporter.Send(Step(step));  // would take for ever if one blocked
  EXPECT_FALSE(reporter.Flush(absl::Milliseconds(10)));
}

TEST_F(ReporterTest, AnAgentThatDoesNotListenCostsOldStepsOnly) {
  FakeAgent agent(address_);
  Reporter reporter(stub_.get(), identity_, {.most_steps = 50});
  constexpr int64_t kSteps = 200000;  // more than the sockets hold
  for (int64_t step = 1; step <= kSteps; ++step) {
    reporter.Send(Step(step));
    if (step % 50000 == 0) reporter.Send(Checkpoint(step));
  }
  agent.Read();
  EXPECT_TRUE(reporter.Flush(absl::Seconds(60)));
  const std::vector<v1::RankReport> received = agent.received();
  std::vector<int64_t> checkpoints;
  int64_t newest = 0;
  for (const v1::RankReport& report : received) {
    if (report.has_checkpoint()) checkpoints.push_back(report.checkpoint().step());
    if (report.has_step()) newest = report.step().step();
  }
  EXPECT_THAT(checkpoints, testing::ElementsAre(50000, 100000, 150000, 200000));
  EXPECT_EQ(newest, kSteps);
  EXPECT_LT(received.size(), static_cast<size_t>(kSteps));
}

TEST_F(ReporterTest, FindsAnAgentThatComesLate) {
  Reporter reporter(stub_.get(), identity_, {.retry = absl::Milliseconds(5)});
  reporter.Send(Checkpoint(50));
  FakeAgent agent(address_);
  agent.Read();
  EXPECT_TRUE(reporter.Flush(absl::Seconds(30)));
  EXPECT_EQ(agent.received().back().checkpoint().step(), 50);
}

}  // namespace
}  // namespace muster
