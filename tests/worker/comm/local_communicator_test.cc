#include "worker/comm/local_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "tests/support/rank_harness.h"

namespace muster {
namespace {

using testing::HasSubstr;

TEST(LocalCommunicatorTest, AbortFreesEveryBlockedRankAtOnce) {
  auto group = MakeLocalGroup(3, absl::Minutes(10));
  std::vector<absl::Status> statuses(2);
  const absl::Time start = absl::Now();
  std::vector<std::thread> threads;
  for (size_t rank : {size_t{0}, size_t{1}}) {
    threads.emplace_back([&, rank] { statuses[rank] = Barrier(*group[rank]); });
  }
  group[2]->Abort("killed by the test");
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(absl::Now() - start, absl::Minutes(1));
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 2 is gone: killed by the test"));
  }
}

TEST(LocalCommunicatorTest, ARankThatEndsIsGoneForThoseThatStillNeedIt) {
  const auto statuses = RunRanks(2, [](Communicator& world) {
    MUSTER_RETURN_IF_ERROR(Barrier(world));
    return world.rank() == 0 ? absl::OkStatus() : Barrier(world);
  });
  EXPECT_TRUE(statuses[0].ok());
  EXPECT_EQ(statuses[1].code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(statuses[1].message()), HasSubstr("rank 0 (world rank 0): the peer is gone"));
}

TEST(LocalCommunicatorTest, UnequalSizesNameBothAtOnce) {
  const auto statuses = RunRanks(2, [](Communicator& world) -> absl::Status {
    std::vector<char> bytes(8);
    const bool first = world.rank() == 0;
    MUSTER_ASSIGN_OR_RETURN(const Ticket ticket,
                            world.Exchange({{first ? Transfer::Direction::kSend : Transfer::Direction::kReceive,
                                             first ? 1 : 0, bytes.data(), first ? 8 : 6}}));
    return world.Wait(ticket);
  });
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(statuses[0].message()), testing::AllOf(HasSubstr("8 bytes"), HasSubstr("6 bytes")));
}

TEST(LocalCommunicatorTest, TransfersThatNobodyWaitedForLeaveNothingBehind) {
  auto group = MakeLocalGroup(2, absl::Seconds(60));
  {
    std::vector<char> dies_early(1024);
    ASSERT_TRUE(group[0]->Exchange({{Transfer::Direction::kReceive, 1, dies_early.data(), 1024}}).ok());
    group[0].reset();
  }
  std::vector<char> bytes(1024);
  const auto ticket = group[1]->Exchange({{Transfer::Direction::kSend, 0, bytes.data(), 1024}});
  ASSERT_TRUE(ticket.ok());
  EXPECT_EQ(group[1]->Wait(*ticket).code(), absl::StatusCode::kUnavailable);
}

TEST(RankHarnessTest, OneRanksFailureIsReportedWithEveryMessage) {
  const auto statuses = RunRanks(3, [](Communicator& world) -> absl::Status {
    if (world.rank() == 1) return absl::DataLossError("a bad block");
    return Barrier(world);
  });
  const testing::AssertionResult result = AllOk(statuses);
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message(), testing::AllOf(HasSubstr("rank 1: DATA_LOSS: a bad block"),
                                               HasSubstr("rank 0: UNAVAILABLE"), HasSubstr("rank 2: UNAVAILABLE")));
}

}  // namespace
}  // namespace muster
