#include "server/cluster/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "common/rpc/grpc_status.h"
#include "tests/support/fake_clock.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::GroupKey MakeKey(int64_t attempt = 1, const std::string& group = "world") {
  v1::GroupKey key;
  key.set_job_id("job-1");
  key.set_attempt(attempt);
  key.set_group(group);
  return key;
}

// What became of one rank's call; null while it waits.
using Joined = std::shared_ptr<std::unique_ptr<absl::StatusOr<v1::JoinGroupResponse>>>;

class RendezvousTest : public testing::Test {
 protected:
  RendezvousTest() { rendezvous_.OpenAttempt("job-1", 1); }

  Joined Join(int64_t rank, int64_t size, bool ready = true, int64_t attempt = 1, const std::string& group = "world") {
    v1::JoinGroupRequest request;
    *request.mutable_key() = MakeKey(attempt, group);
    request.set_rank(rank);
    request.set_size(size);
    request.set_address("host-" + std::to_string(rank));
    request.set_ready(ready);
    request.set_reason(ready ? "" : "out of memory");
    request.mutable_timeout()->set_seconds(10 + rank);
    Joined joined = std::make_shared<std::unique_ptr<absl::StatusOr<v1::JoinGroupResponse>>>();
    waiter_ = rendezvous_.JoinGroup(request, [joined](absl::StatusOr<v1::JoinGroupResponse> result) {
      *joined = std::make_unique<absl::StatusOr<v1::JoinGroupResponse>>(std::move(result));
    });
    return joined;
  }

  FakeClock clock_;
  Rendezvous rendezvous_{&clock_};
  Rendezvous::WaiterId waiter_ = 0;  // of the last Join
};

TEST_F(RendezvousTest, AnswersAllWhenTheLastHasJoined) {
  const Joined first = Join(1, 2);
  EXPECT_EQ(*first, nullptr);
  const Joined second = Join(0, 2);
  for (const Joined& joined : {first, second}) {
    ASSERT_NE(*joined, nullptr);
    ASSERT_TRUE((*joined)->ok()) << (*joined)->status();
    EXPECT_THAT((**joined)->addresses(), ElementsAre("host-0", "host-1"));
  }
  // A rank whose answer was lost asks again and gets it at once.
  const Joined again = Join(1, 2);
  ASSERT_NE(*again, nullptr);
  EXPECT_TRUE((*again)->ok());
}

TEST_F(RendezvousTest, OneVoteAgainstFailsAllNowAndLater) {
  const Joined first = Join(0, 3);
  const Joined against = Join(1, 3, false);
  const Joined late = Join(2, 3);
  for (const Joined& joined : {first, against, late}) {
    ASSERT_NE(*joined, nullptr);
    EXPECT_EQ((*joined)->status().code(), absl::StatusCode::kAborted);
    EXPECT_THAT(std::string((*joined)->status().message()), HasSubstr("rank 1 voted against world: out of memory"));
  }
}

TEST_F(RendezvousTest, TheFirstDeadlineFailsAllAndNamesTheMissing) {
  const Joined first = Join(0, 3);
  const Joined second = Join(2, 3);
  clock_.Advance(absl::Seconds(9));
  rendezvous_.Tick();
  EXPECT_EQ(*first, nullptr);
  clock_.Advance(absl::Seconds(1));
  rendezvous_.Tick();
  for (const Joined& joined : {first, second}) {
    ASSERT_NE(*joined, nullptr);
    EXPECT_EQ((*joined)->status().code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(ErrorInfoOf((*joined)->status()).metadata().at("missing"), "1");
  }
  EXPECT_EQ(rendezvous_.waiting(), 0);
}

TEST_F(RendezvousTest, ARankThatLeavesTakesTheOthersAlong) {
  const Joined stays = Join(0, 3);
  const Joined leaves = Join(1, 3);
  rendezvous_.Leave(waiter_);
  EXPECT_EQ(*leaves, nullptr) << "it is not called back";
  ASSERT_NE(*stays, nullptr);
  EXPECT_EQ(ErrorInfoOf((*stays)->status()).reason(), "RANK_LEFT");
}

TEST_F(RendezvousTest, AnOldAttemptIsStale) {
  const Joined old = Join(0, 2);
  rendezvous_.OpenAttempt("job-1", 2);
  ASSERT_NE(*old, nullptr);
  EXPECT_EQ((*old)->status().code(), absl::StatusCode::kAborted);
  const Joined late = Join(1, 2);
  ASSERT_NE(*late, nullptr);
  EXPECT_EQ((*late)->status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ErrorInfoOf((*late)->status()).reason(), "STALE_ATTEMPT");
  EXPECT_EQ(ErrorInfoOf((*late)->status()).metadata().at("current_attempt"), "2");
  EXPECT_EQ(ErrorInfoOf(rendezvous_.SetKey(MakeKey(1), "a", "b")).reason(), "STALE_ATTEMPT");
}

TEST_F(RendezvousTest, TheEndOfAnAttemptFailsEverythingThatWaits) {
  const Joined joined = Join(0, 2);
  absl::Status awaited;
  rendezvous_.AwaitKey(MakeKey(), "id", absl::Seconds(5), [&](absl::StatusOr<std::string> v) { awaited = v.status(); });
  EXPECT_EQ(rendezvous_.waiting(), 2);
  rendezvous_.CloseAttempt("job-1", "rank 3 was killed");
  EXPECT_THAT(std::string((*joined)->status().message()), HasSubstr("rank 3 was killed"));
  EXPECT_EQ(awaited.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(rendezvous_.waiting(), 0);
}

TEST_F(RendezvousTest, GroupsAndSizesAreKeptApart) {
  const Joined world = Join(0, 2);
  const Joined data = Join(1, 2, true, 1, "data/0");
  EXPECT_EQ(*world, nullptr);
  EXPECT_EQ(*data, nullptr);
  const Joined other_size = Join(1, 4);
  EXPECT_EQ((*other_size)->status().code(), absl::StatusCode::kInvalidArgument);
  const Joined outside = Join(2, 2);
  EXPECT_EQ((*outside)->status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(RendezvousTest, AKeyIsSetOnceAndWakesWhoAwaitsIt) {
  std::string value;
  rendezvous_.AwaitKey(MakeKey(), "id", absl::Seconds(5), [&](absl::StatusOr<std::string> v) { value = *v; });
  EXPECT_EQ(value, "");
  EXPECT_TRUE(rendezvous_.SetKey(MakeKey(1, "data/0"), "id", "of another group").ok());
  EXPECT_EQ(value, "");
  EXPECT_TRUE(rendezvous_.SetKey(MakeKey(), "id", "7").ok());
  EXPECT_EQ(value, "7");
  EXPECT_TRUE(rendezvous_.SetKey(MakeKey(), "id", "7").ok());
  EXPECT_EQ(rendezvous_.SetKey(MakeKey(), "id", "8").code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(RendezvousTest, AKeyThatIsNotSetInTimeFailsOnlyItsWaiter) {
  absl::Status early;
  absl::Status late;
  rendezvous_.AwaitKey(MakeKey(), "id", absl::Seconds(5), [&](absl::StatusOr<std::string> v) { early = v.status(); });
  rendezvous_.AwaitKey(MakeKey(), "id", absl::Seconds(9), [&](absl::StatusOr<std::string> v) { late = v.status(); });
  clock_.Advance(absl::Seconds(6));
  rendezvous_.Tick();
  EXPECT_EQ(early.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(rendezvous_.waiting(), 1);
  EXPECT_TRUE(rendezvous_.SetKey(MakeKey(), "id", "7").ok());
  EXPECT_TRUE(late.ok());
}

}  // namespace
}  // namespace muster
