// The board behind the agent's Unix socket, as a rank sees it.
#include "worker/agent/command_board.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "tests/support/temporary_directory.h"
#include "worker/agent/rank_service.h"

namespace muster {
namespace {

class CommandBoardTest : public testing::Test {
 protected:
  CommandBoardTest() {
    const std::string path = directory_.File("agent.sock");
    absl::StatusOr<std::unique_ptr<RankServiceServer>> server =
        RankServiceServer::Start(&loop_, path, [](const v1::RankReport&) {});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = v1::RankService::NewStub(grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials()));
  }

  // The stream of one rank; it ends with the test.
  std::unique_ptr<grpc::ClientReader<v1::RankCommands>> Listen(int64_t rank) {
    v1::WatchCommandsRequest request;
    request.set_job_id("job-1");
    request.set_attempt(1);
    request.set_rank(rank);
    contexts_.push_back(std::make_unique<grpc::ClientContext>());
    return stub_->WatchCommands(contexts_.back().get(), request);
  }
  static RankKey Rank(int64_t rank) { return {"job-1", 1, rank}; }
  static v1::RankCommands Checkpoint(int64_t number) {
    v1::RankCommands commands;
    commands.set_checkpoint(number);
    return commands;
  }

  TemporaryDirectory directory_;
  const std::unique_ptr<Clock> clock_ = MakeSystemClock();
  EventLoop loop_{clock_.get()};
  std::unique_ptr<RankServiceServer> server_;
  std::unique_ptr<v1::RankService::Stub> stub_;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts_;
};

TEST_F(CommandBoardTest, ARankHearsWhatIsAskedNowAndEveryChangeOfIt) {
  server_->commands().Set(Rank(0), Checkpoint(1));
  const auto reader = Listen(0);
  v1::RankCommands heard;
  ASSERT_TRUE(reader->Read(&heard));
  EXPECT_EQ(heard.checkpoint(), 1);
  server_->commands().Set(Rank(1), Checkpoint(7));  // of another
  server_->commands().Set(Rank(0), Checkpoint(1));  // no change
  server_->commands().Set(Rank(0), Checkpoint(2));
  ASSERT_TRUE(reader->Read(&heard));
  EXPECT_EQ(heard.checkpoint(), 2);
}

TEST_F(CommandBoardTest, ARankThatComesBackHearsWhatItMissed) {
  v1::RankCommands heard;
  {
    const auto reader = Listen(0);
    ASSERT_TRUE(reader->Read(&heard));
    EXPECT_EQ(heard.checkpoint(), 0);
    contexts_.back()->TryCancel();
    EXPECT_FALSE(reader->Finish().ok());
  }
  server_->commands().Set(Rank(0), Checkpoint(3));
  const auto again = Listen(0);
  ASSERT_TRUE(again->Read(&heard));
  EXPECT_EQ(heard.checkpoint(), 3);
}

TEST_F(CommandBoardTest, StreamsEndWithTheServer) {
  const auto reader = Listen(0);
  v1::RankCommands heard;
  ASSERT_TRUE(reader->Read(&heard));
  server_.reset();
  EXPECT_FALSE(reader->Read(&heard));
  EXPECT_FALSE(reader->Finish().ok());
}

}  // namespace
}  // namespace muster
