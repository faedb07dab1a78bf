#include "worker/rank/rendezvous_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/rpc/address.h"
#include "tests/worker/rank/fake_rendezvous.h"

namespace muster {
namespace {

using testing::HasSubstr;

class RendezvousClientTest : public testing::Test {
 protected:
  FakeRendezvous coordinator_;
  const std::unique_ptr<v1::RendezvousService::Stub> stub_ =
      v1::RendezvousService::NewStub(MakeChannel(coordinator_.address()));
  RendezvousClient client_{stub_.get(), RankIdentity{"job-1", 3, 2, 4}};
};

TEST_F(RendezvousClientTest, JoinsWithItsNumberAndGetsTheAddresses) {
  const auto addresses = client_.Join("world", "10.0.0.7", absl::Seconds(30));
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  EXPECT_EQ(addresses->size(), 4u);
  const v1::JoinGroupRequest request = coordinator_.joins()[0];
  EXPECT_EQ(request.key().job_id(), "job-1");
  EXPECT_EQ(request.key().attempt(), 3);
  EXPECT_EQ(request.key().group(), "world");
  EXPECT_EQ(request.rank(), 2);
  EXPECT_EQ(request.size(), 4);
  EXPECT_EQ(request.address(), "10.0.0.7");
  EXPECT_TRUE(request.ready());
  EXPECT_GT(request.timeout().seconds(), 20);
}

TEST_F(RendezvousClientTest, VotesAgainstWithItsReason) {
  coordinator_.FailNext({absl::AbortedError("rank 2: no route to rank 3")});
  const absl::Status status =
      client_.Vote("world/ready", absl::UnavailableError("no route to rank 3"), absl::Seconds(30));
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(coordinator_.joins()[0].ready());
  EXPECT_EQ(coordinator_.joins()[0].reason(), "no route to rank 3");
}

TEST_F(RendezvousClientTest, KeepsTryingWhileTheCoordinatorIsAway) {
  coordinator_.FailNext({absl::UnavailableError("restarting"), absl::UnavailableError("restarting")});
  EXPECT_TRUE(client_.Join("world", "host", absl::Seconds(30)).ok());
  EXPECT_EQ(coordinator_.joins().size(), 3u);
}

TEST_F(RendezvousClientTest, GivesUpAtItsDeadline) {
  coordinator_.FailNext(std::vector<absl::Status>(1000, absl::UnavailableError("restarting")));
  EXPECT_EQ(client_.Join("world", "host", absl::Milliseconds(120)).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(RendezvousClientTest, AStaleAttemptIsNotTheJobsFault) {
  coordinator_.FailNext(
      {ErrorWithInfo(absl::StatusCode::kFailedPrecondition, "STALE_ATTEMPT", "attempt 3 of job-1 is over, 4 runs")});
  const absl::Status status = client_.Join("world", "host", absl::Seconds(30)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("4 runs"));
}

TEST_F(RendezvousClientTest, IsTheStoreThatBootstrapNeeds) {
  GrpcRendezvousStore store(&client_, "world", absl::Seconds(30));
  const std::string bytes("\0binary\xff", 8);
  EXPECT_TRUE(store.Set("rank/2", bytes).ok());
  EXPECT_EQ(*store.Get("rank/2", absl::Seconds(30)), bytes);
  EXPECT_EQ(store.Get("rank/3", absl::Milliseconds(1)).status().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace muster
