// A rank's listener and an agent's board, over a Unix socket.
#include "worker/rank/command_listener.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

// An agent that says one thing after another, each on a stream of its own.
class FakeAgent : public v1::RankService::Service {
 public:
  explicit FakeAgent(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeAgent() override { server_->Shutdown(std::chrono::system_clock::now()); }

  void Say(int64_t checkpoint, int64_t trace, int64_t steps) {
    absl::MutexLock lock(&mutex_);
    v1::RankCommands& commands = says_.emplace_back();
    commands.set_checkpoint(checkpoint);
    commands.set_trace(trace);
    commands.set_trace_steps(steps);
  }
  void AwaitAllSaid() {
    absl::MutexLock lock(&mutex_);
    const auto said = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return says_.empty(); };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&said), absl::Seconds(30)));
  }

 private:
  grpc::Status WatchCommands(grpc::ServerContext* context, const v1::WatchCommandsRequest* request,
                             grpc::ServerWriter<v1::RankCommands>* writer) override {
    absl::MutexLock lock(&mutex_);
    EXPECT_EQ(request->rank(), 2);
    if (!says_.empty()) {
      writer->Write(says_.front());
      says_.erase(says_.begin());
    }
    return grpc::Status::OK;
  }

  absl::Mutex mutex_;
  std::vector<v1::RankCommands> says_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

TEST(CommandListener, PassesEachRequestOnOnceThoughStreamsBreakAndOldNumbersComeAgain) {
  const TemporaryDirectory directory;
  const std::string address = "unix:" + directory.File("agent.sock");
  FakeAgent agent(address);
  const auto stub = v1::RankService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  v1::Assignment assignment;
  assignment.set_rank(2);
  assignment.mutable_commands()->set_checkpoint(4);
  agent.Say(4, 0, 0);  // with which it was started
  agent.Say(5, 0, 0);
  agent.Say(0, 0, 0);  // an agent that does not know of it yet
  agent.Say(5, 0, 0);
  agent.Say(5, 1, 3);
  agent.Say(6, 1, 3);
  agent.Say(6, 1, 3);
  absl::Mutex mutex;
  int checkpoints = 0;
  std::vector<int64_t> traces;
  CommandEvents events;
  events.on_checkpoint = [&] {
    absl::MutexLock lock(&mutex);
    ++checkpoints;
  };
  events.on_trace = [&](int64_t steps) {
    absl::MutexLock lock(&mutex);
    traces.push_back(steps);
  };
  {
    CommandListener listener(stub.get(), assignment, events, absl::Milliseconds(1));
    agent.AwaitAllSaid();
    const auto heard = [&] { return checkpoints == 2 && traces.size() == 1; };
    absl::MutexLock lock(&mutex);
    EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&heard), absl::Seconds(30)));
  }
  EXPECT_EQ(checkpoints, 2) << "requests 5 and 6";
  EXPECT_EQ(traces, std::vector<int64_t>{3});
}

}  // namespace
}  // namespace muster
