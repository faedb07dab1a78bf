// The whole agent against a coordinator in this process, with shell scripts as ranks.
#include "worker/agent/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "common/base/clock.h"
#include "tests/support/temporary_directory.h"
#include "tests/worker/agent/fake_coordinator.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr char kRunForEver[] = "#!/bin/sh\necho up\nexec sleep 1000\n";
constexpr char kSaveOnStop[] = "#!/bin/sh\ntrap 'kill $!; exit 10' TERM\nsleep 1000 &\necho up\nwait\n";

bool IsHello(const v1::WorkerMessage& message) { return message.has_hello(); }
bool HasRank(const v1::WorkerMessage& message) { return message.heartbeat().ranks_size() > 0; }
bool HasExit(const v1::WorkerMessage& message) {
  for (const v1::ObservedRank& rank : message.heartbeat().ranks()) {
    if (rank.phase() == v1::RANK_EXITED) return true;
  }
  return false;
}

// The agent's loop, and with it all forking, is on one thread that lives as long as the agent.
class RunningAgent {
 public:
  RunningAgent(const AgentOptions& options, const Clock* clock) : loop_(clock) {
    absl::StatusOr<std::unique_ptr<Agent>> agent = Agent::Create(options, "test", &loop_, clock);
    status = agent.status();
    if (!agent.ok()) return;
    agent_ = *std::move(agent);
    thread_ = std::thread([this] {
      agent_->Run();
      agent_.reset();
    });
  }
  ~RunningAgent() {
    if (!thread_.joinable()) return;
    if (!ended_) agent_->Shutdown(2);
    thread_.join();
  }

  void Shutdown() { agent_->Shutdown(1); }
  void Join() {
    thread_.join();
    ended_ = true;
  }

  absl::Status status;

 private:
  EventLoop loop_;
  std::unique_ptr<Agent> agent_;
  std::thread thread_;
  bool ended_ = false;
};

class AgentTest : public testing::Test {
 protected:
  AgentOptions Options(const std::string& script) {
    AgentOptions options;
    options.coordinator = {"127.0.0.1", coordinator_.port()};
    options.name = "worker-0";
    options.slots = 2;
    options.http = {"127.0.0.1", 0};
    options.address = "127.0.0.1";
    options.data_root = directory_.path();
    options.checkpoint_root = directory_.File("checkpoints");
    std::filesystem::create_directories(options.checkpoint_root);
    options.state_dir = directory_.File("state");
    options.rank_program = directory_.Put("muster-rank", script);
    chmod(options.rank_program.c_str(), 0755);
    return options;
  }

  v1::Assignment* Desire(v1::CoordinatorMessage& message, int64_t generation) {
    message.mutable_desired()->set_generation(generation);
    v1::Assignment* assignment = message.mutable_desired()->add_assignments();
    assignment->set_job_id("job-1");
    assignment->set_attempt(1);
    assignment->set_action(v1::RUN);
    return assignment;
  }
  void RunOneRank() {
    v1::CoordinatorMessage message;
    Desire(message, 1);
    coordinator_.Send(message);
  }
  void Acknowledge(const v1::ObservedRank& rank) {
    v1::CoordinatorMessage message;
    *message.mutable_exits_acknowledged()->add_ranks() = rank;
    coordinator_.Send(message);
  }

  const std::unique_ptr<Clock> clock_ = MakeSystemClock();
  TemporaryDirectory directory_;
  FakeCoordinator coordinator_;
};

TEST_F(AgentTest, SaysHelloWithItsInventory) {
  coordinator_.Start();
  RunningAgent agent(Options(kRunForEver), clock_.get());
  ASSERT_TRUE(agent.status.ok()) << agent.status;
  const v1::Hello hello = coordinator_.Await(IsHello).hello();
  EXPECT_EQ(hello.worker(), "worker-0");
  EXPECT_EQ(hello.inventory().devices_size(), 2);
  EXPECT_EQ(hello.inventory().devices(1).memory_bytes(), int64_t{512} << 20);
  EXPECT_FALSE(hello.agent_id().empty());
  EXPECT_THAT(hello.inventory().metrics_address(), HasSubstr("127.0.0.1:"));
}

TEST_F(AgentTest, ReportsAnExitWithItsCauseUntilItIsAcknowledged) {
  coordinator_.Start();
  RunningAgent agent(Options("#!/bin/sh\necho 'muster-rank: error: no data' >&2\nexit 20\n"), clock_.get());
  ASSERT_TRUE(agent.status.ok()) << agent.status;
  coordinator_.Await(IsHello);
  RunOneRank();
  const v1::ObservedRank ended = coordinator_.Await(HasExit).heartbeat().ranks(0);
  EXPECT_EQ(ended.exit().kind(), v1::EXIT_USER_ERROR);
  EXPECT_EQ(ended.exit().message(), "no data");
  EXPECT_TRUE(HasExit(coordinator_.Await(HasExit)));  // again with the next heartbeat
  Acknowledge(ended);
  const auto has_none = [](const v1::WorkerMessage& m) { return m.has_heartbeat() && m.heartbeat().ranks().empty(); };
  EXPECT_TRUE(coordinator_.Await(has_none).has_heartbeat());
}

TEST_F(AgentTest, KeepsItsRanksWhileTheCoordinatorIsAwayAndTellsThemToTheNext) {
  coordinator_.Start();
  RunningAgent agent(Options(kRunForEver), clock_.get());
  ASSERT_TRUE(agent.status.ok()) << agent.status;
  coordinator_.Await(IsHello);
  RunOneRank();
  const int64_t pid = coordinator_.Await(HasRank).heartbeat().ranks(0).pid();
  EXPECT_GT(pid, 0);
  coordinator_.Stop();
  coordinator_.Start();
  const v1::Hello hello = coordinator_.Await(IsHello).hello();
  ASSERT_EQ(hello.ranks_size(), 1);
  EXPECT_EQ(hello.ranks(0).pid(), pid);
  EXPECT_EQ(hello.ranks(0).phase(), v1::RANK_STARTING);
}

TEST_F(AgentTest, PassesReportsOnAndRepeatsWhatMattersAfterAReconnect) {
  coordinator_.Start();
  const AgentOptions options = Options(kRunForEver);
  RunningAgent agent(options, clock_.get());
  ASSERT_TRUE(agent.status.ok()) << agent.status;
  coordinator_.Await(IsHello);
  RunOneRank();
  coordinator_.Await(HasRank);

  const auto stub = v1::RankService::NewStub(
      grpc::CreateChannel("unix:" + options.state_dir + "/agent.sock", grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::ReportSummary summary;
  const auto writer = stub->Report(&context, &summary);
  v1::RankReport report;
  report.set_job_id("job-1");
  report.set_attempt(1);
  report.set_sequence(1);
  report.mutable_checkpoint()->set_step(50);
  ASSERT_TRUE(writer->Write(report));
  const auto has_checkpoint = [](const v1::WorkerMessage& m) { return m.report().checkpoint().step() == 50; };
  EXPECT_TRUE(coordinator_.Await(has_checkpoint).has_report());
  coordinator_.Stop();
  coordinator_.Start();
  EXPECT_TRUE(coordinator_.Await(has_checkpoint).has_report());
  writer->WritesDone();
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_EQ(summary.received(), 1);
}

TEST_F(AgentTest, KillsItsRanksWhenNobodyAnswers) {
  coordinator_.fence_after = absl::Milliseconds(300);
  coordinator_.answers_heartbeats = false;
  coordinator_.Start();
  RunningAgent agent(Options(kRunForEver), clock_.get());
  ASSERT_TRUE(agent.status.ok()) << agent.status;
  coordinator_.Await(IsHello);
  RunOneRank();
  const v1::ObservedRank ended = coordinator_.Await(HasExit).heartbeat().ranks(0);
  EXPECT_EQ(ended.exit().kind(), v1::EXIT_KILLED);
  EXPECT_THAT(ended.exit().message(), HasSubstr("no contact with the coordinator"));
}

TEST_F(AgentTest, EndsWithItsRanksSavedAndTheirEndsReported) {
  coordinator_.Start();
  RunningAgent agent(Options(kSaveOnStop), clock_.get());
  ASSERT_TRUE(agent.status.ok()) << agent.status;
  coordinator_.Await(IsHello);
  RunOneRank();
  coordinator_.Await(HasRank);
  // Its trap is set when its log says so.
  v1::CoordinatorMessage logs;
  logs.mutable_log_request()->set_job_id("job-1");
  logs.mutable_log_request()->set_follow(true);
  coordinator_.Send(logs);
  const auto is_up = [](const v1::WorkerMessage& m) { return m.log_reply().chunk().data() == "up\n"; };
  ASSERT_TRUE(coordinator_.Await(is_up).has_log_reply());

  agent.Shutdown();
  const auto is_leaving = [](const v1::WorkerMessage& m) { return m.heartbeat().devices_size() == 2; };
  EXPECT_FALSE(coordinator_.Await(is_leaving).heartbeat().devices(0).unhealthy_reason().empty());
  const v1::ObservedRank ended = coordinator_.Await(HasExit).heartbeat().ranks(0);
  EXPECT_EQ(ended.exit().kind(), v1::EXIT_STOPPED);
  Acknowledge(ended);
  agent.Join();
}

TEST_F(AgentTest, ReportsTheRanksOfAnEarlierAgent) {
  coordinator_.Start();
  const AgentOptions options = Options(kRunForEver);
  v1::Assignment assignment;
  assignment.set_job_id("job-1");
  assignment.set_attempt(4);
  std::filesystem::create_directories(options.state_dir + "/ranks/job-1.4.0");
  directory_.Put("state/ranks/job-1.4.0/assignment.binpb", assignment.SerializeAsString());
  RunningAgent agent(options, clock_.get());
  ASSERT_TRUE(agent.status.ok()) << agent.status;
  const v1::Hello hello = coordinator_.Await(IsHello).hello();
  ASSERT_EQ(hello.ranks_size(), 1);
  EXPECT_EQ(hello.ranks(0).attempt(), 4);
  EXPECT_EQ(hello.ranks(0).exit().kind(), v1::EXIT_INFRASTRUCTURE);
  Acknowledge(hello.ranks(0));
  const auto has_none = [](const v1::WorkerMessage& m) { return m.has_heartbeat() && m.heartbeat().ranks().empty(); };
  coordinator_.Await(has_none);
  EXPECT_FALSE(std::filesystem::exists(options.state_dir + "/ranks/job-1.4.0"));
}

TEST_F(AgentTest, PassesOnWhatTheRanksOfAnEarlierAgentSaidBeforeTheirEnds) {
  coordinator_.Start();
  const AgentOptions options = Options("#!/bin/sh\nread line <$(dirname $0)/release\nexit 0\n");
  const std::string release = directory_.File("release");
  ASSERT_EQ(mkfifo(release.c_str(), 0600), 0);
  {
    RunningAgent first(options, clock_.get());
    ASSERT_TRUE(first.status.ok()) << first.status;
    coordinator_.Await(IsHello);
    RunOneRank();
    ASSERT_TRUE(coordinator_.Await(HasRank).has_heartbeat());
    coordinator_.Stop();  // nobody hears of the work that follows
    const auto stub = v1::RankService::NewStub(
        grpc::CreateChannel("unix:" + options.state_dir + "/agent.sock", grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    v1::ReportSummary summary;
    const auto writer = stub->Report(&context, &summary);
    v1::RankReport report;
    report.set_job_id("job-1");
    report.set_attempt(1);
    report.set_sequence(1);
    report.mutable_checkpoint()->set_step(50);
    ASSERT_TRUE(writer->Write(report));
    writer->WritesDone();
    ASSERT_TRUE(writer->Finish().ok());
    std::ofstream(release) << "end\n";
    first.Shutdown();
    first.Join();
  }
  coordinator_.Start();
  RunningAgent second(options, clock_.get());
  ASSERT_TRUE(second.status.ok()) << second.status;
  const v1::Hello hello = coordinator_.Await(IsHello).hello();
  ASSERT_EQ(hello.ranks_size(), 1);
  EXPECT_NE(hello.ranks(0).phase(), v1::RANK_EXITED);
  bool ended = false;
  const auto has_checkpoint = [&](const v1::WorkerMessage& m) {
    ended = ended || HasExit(m);
    return m.report().checkpoint().step() == 50;
  };
  EXPECT_TRUE(coordinator_.Await(has_checkpoint).has_report());
  EXPECT_FALSE(ended) << "the end came before what the rank had said";
  EXPECT_TRUE(HasExit(coordinator_.Await(HasExit)));
}

TEST_F(AgentTest, DeletesCheckpointsOnlyBelowItsRoot) {
  coordinator_.Start();
  const AgentOptions options = Options(kRunForEver);
  std::filesystem::create_directories(options.checkpoint_root + "/job-1/attempt-1/step-10");
  std::filesystem::create_directories(directory_.File("precious"));
  RunningAgent agent(options, clock_.get());
  ASSERT_TRUE(agent.status.ok()) << agent.status;
  coordinator_.Await(IsHello);
  v1::CoordinatorMessage message;
  v1::Assignment* assignment = Desire(message, 1);
  assignment->add_delete_checkpoints("../precious");
  assignment->add_delete_checkpoints("job-1/attempt-1/step-10");
  coordinator_.Send(message);
  const auto is_gone = [&](const v1::WorkerMessage&) {
    return !std::filesystem::exists(options.checkpoint_root + "/job-1/attempt-1/step-10");
  };
  coordinator_.Await(is_gone);
  EXPECT_FALSE(std::filesystem::exists(options.checkpoint_root + "/job-1/attempt-1/step-10"));
  EXPECT_TRUE(std::filesystem::exists(directory_.File("precious")));
}

TEST_F(AgentTest, RefusesAStateDirectoryThatAnotherAgentUses) {
  coordinator_.Start();
  const AgentOptions options = Options(kRunForEver);
  RunningAgent first(options, clock_.get());
  ASSERT_TRUE(first.status.ok()) << first.status;
  RunningAgent second(options, clock_.get());
  EXPECT_EQ(second.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status.message()), HasSubstr(options.state_dir));
}

TEST_F(AgentTest, RefusesAStateDirectoryTooDeepForASocket) {
  coordinator_.Start();
  AgentOptions options = Options(kRunForEver);
  options.state_dir = directory_.File(std::string(100, 'x'));
  RunningAgent agent(options, clock_.get());
  EXPECT_EQ(agent.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(agent.status.message()), HasSubstr("--state-dir"));
  EXPECT_THAT(std::string(agent.status.message()), HasSubstr("107"));
}

}  // namespace
}  // namespace muster
