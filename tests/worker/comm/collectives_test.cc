// What Exchange, Wait, Split and the collectives on them promise, on every back-end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "tests/support/rank_harness.h"
#include "tests/worker/comm/back_ends.h"

namespace muster {
namespace {

using testing::ElementsAre;

class CollectivesTest : public testing::TestWithParam<BackEnd> {
 protected:
  std::vector<absl::Status> Run(int size, const RankBody& body) {
    return GetParam().run(size, body, absl::Seconds(60));
  }
};

INSTANTIATE_TEST_SUITE_P(BackEnds, CollectivesTest, testing::ValuesIn(BackEnds()),
                         [](const testing::TestParamInfo<BackEnd>& info) { return std::string(info.param.name); });

Transfer Send(int peer, std::vector<int>& values) {
  return {Transfer::Direction::kSend, peer, values.data(), static_cast<int64_t>(values.size() * sizeof(int))};
}

Transfer Receive(int peer, std::vector<int>& values) {
  return {Transfer::Direction::kReceive, peer, values.data(), static_cast<int64_t>(values.size() * sizeof(int))};
}

absl::Status ExchangeAndWait(Communicator& group, absl::Span<const Transfer> transfers) {
  MUSTER_ASSIGN_OR_RETURN(const Ticket ticket, group.Exchange(transfers));
  return group.Wait(ticket);
}

TEST_P(CollectivesTest, AllGatherPutsEveryRankInItsPlace) {
  for (int size : {1, 2, 5, 16}) {
    EXPECT_TRUE(AllOk(Run(size, [size](Communicator& world) {
      const int mine = 100 + world.rank();
      std::vector<int> all(static_cast<size_t>(size), -1);
      MUSTER_RETURN_IF_ERROR(AllGather(world, {reinterpret_cast<const std::byte*>(&mine), sizeof(mine)},
                                       {reinterpret_cast<std::byte*>(all.data()), all.size() * sizeof(int)}));
      std::vector<int> expected(static_cast<size_t>(size));
      std::iota(expected.begin(), expected.end(), 100);
      EXPECT_EQ(all, expected);
      return absl::OkStatus();
    })));
  }
}

TEST_P(CollectivesTest, AllReduceSumAddsInRankOrderAndGivesEveryRankTheSameBits) {
  // In any other order 2^53 swallows the ones.
  const std::vector<double> by_rank = {1, 1, 9007199254740992.0, -9007199254740992.0};
  EXPECT_TRUE(AllOk(Run(4, [&by_rank](Communicator& world) {
    const double mine = by_rank[static_cast<size_t>(world.rank())];
    std::vector<double> values = {mine, 2 * mine};
    MUSTER_RETURN_IF_ERROR(AllReduceSum(world, absl::MakeSpan(values)));
    EXPECT_THAT(values, ElementsAre(2, 4));
    return absl::OkStatus();
  })));
}

TEST_P(CollectivesTest, NobodyLeavesABarrierBeforeAllHaveEntered) {
  std::atomic<int> entered = 0;
  EXPECT_TRUE(AllOk(Run(5, [&entered](Communicator& world) {
    for (int round = 1; round <= 20; ++round) {
      ++entered;
      MUSTER_RETURN_IF_ERROR(Barrier(world));
      EXPECT_GE(entered.load(), 5 * round);
      MUSTER_RETURN_IF_ERROR(Barrier(world));
    }
    return absl::OkStatus();
  })));
}

TEST_P(CollectivesTest, TicketsMayBeWaitedForInAnyOrder) {
  EXPECT_TRUE(AllOk(Run(2, [](Communicator& world) -> absl::Status {
    const int peer = 1 - world.rank();
    std::vector<std::vector<int>> sent;
    std::vector<std::vector<int>> received;
    std::vector<Ticket> tickets;
    for (int i = 0; i < 8; ++i) {
      sent.emplace_back(static_cast<size_t>(1 + i * 1000), world.rank() * 100 + i);
      received.emplace_back(sent.back().size());
    }
    for (size_t i = 0; i < 8; ++i) {
      MUSTER_ASSIGN_OR_RETURN(const Ticket ticket, world.Exchange({Send(peer, sent[i]), Receive(peer, received[i])}));
      tickets.push_back(ticket);
    }
    // One rank from the front, the other from the back.
    for (size_t i = 0; i < 8; ++i) MUSTER_RETURN_IF_ERROR(world.Wait(tickets[world.rank() == 0 ? i : 7 - i]));
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(received[i], std::vector<int>(sent[i].size(), peer * 100 + static_cast<int>(i)));
    }
    return absl::OkStatus();
  })));
}

TEST_P(CollectivesTest, AReceiveMayBePostedLongBeforeItsSendAndASendBeforeItsReceive) {
  // Rank 1 posts its receives from 0 and 2 first, and only then says so; rank 2's sends are posted long before anyone
  // receives.
  EXPECT_TRUE(AllOk(Run(3, [](Communicator& world) -> absl::Status {
    std::vector<int> value = {world.rank()};
    std::vector<int> token = {7};
    if (world.rank() == 0) {
      std::vector<int> first = {10}, second = {11};
      MUSTER_RETURN_IF_ERROR(ExchangeAndWait(world, {Receive(1, token)}));
      return ExchangeAndWait(world, {Send(1, first), Send(1, second)});
    }
    if (world.rank() == 2) {
      std::vector<int> early = {20};
      MUSTER_ASSIGN_OR_RETURN(const Ticket send, world.Exchange({Send(1, early)}));
      MUSTER_RETURN_IF_ERROR(ExchangeAndWait(world, {Send(1, token)}));
      return world.Wait(send);
    }
    std::vector<int> first = {-1}, second = {-1}, early = {-1};
    MUSTER_ASSIGN_OR_RETURN(const Ticket receives, world.Exchange({Receive(0, first), Receive(0, second)}));
    MUSTER_RETURN_IF_ERROR(ExchangeAndWait(world, {Send(0, token)}));
    MUSTER_RETURN_IF_ERROR(world.Wait(receives));
    std::vector<int> after = {-1};
    MUSTER_RETURN_IF_ERROR(ExchangeAndWait(world, {Receive(2, early), Receive(2, after)}));
    EXPECT_THAT((std::vector<int>{first[0], second[0], early[0], after[0]}), ElementsAre(10, 11, 20, 7));
    return absl::OkStatus();
  })));
}

TEST_P(CollectivesTest, EmptyTransfersKeepTheirPlaceInTheOrder) {
  EXPECT_TRUE(AllOk(Run(2, [](Communicator& world) -> absl::Status {
    std::vector<int> nothing, one = {5}, got = {-1};
    if (world.rank() == 0) return ExchangeAndWait(world, {Send(1, nothing), Send(1, one)});
    MUSTER_RETURN_IF_ERROR(ExchangeAndWait(world, {Receive(0, nothing), Receive(0, got)}));
    EXPECT_EQ(got[0], 5);
    return absl::OkStatus();
  })));
}

TEST_P(CollectivesTest, GroupsOfAWorldDoNotHearEachOther) {
  // Two data groups and two pipeline groups of a 2 x 2 world, as the engine makes them; operations of all are open at
  // once.
  EXPECT_TRUE(AllOk(Run(4, [](Communicator& world) -> absl::Status {
    const int data = world.rank() % 2, stage = world.rank() / 2;
    MUSTER_ASSIGN_OR_RETURN(auto data_group, world.Split({2 * stage, 2 * stage + 1}, absl::StrCat("data/", stage)));
    MUSTER_ASSIGN_OR_RETURN(auto pipeline, world.Split({data + 2, data}, absl::StrCat("pipeline/", data)));
    EXPECT_EQ(data_group->rank(), data);
    EXPECT_EQ(pipeline->rank(), 1 - stage) << "the list's order is the group's order";
    EXPECT_EQ(pipeline->size(), 2);
    EXPECT_EQ(pipeline->name(), absl::StrCat("pipeline/", data));

    std::vector<int> mine = {world.rank()}, from_data = {-1}, from_pipeline = {-1}, from_world = {-1};
    const int opposite = 3 - world.rank();
    MUSTER_ASSIGN_OR_RETURN(const Ticket a, data_group->Exchange({Receive(1 - data, from_data), Send(1 - data, mine)}));
    MUSTER_ASSIGN_OR_RETURN(const Ticket b, world.Exchange({Receive(opposite, from_world), Send(opposite, mine)}));
    MUSTER_ASSIGN_OR_RETURN(const Ticket c, pipeline->Exchange({Receive(stage, from_pipeline), Send(stage, mine)}));
    MUSTER_RETURN_IF_ERROR(pipeline->Wait(c));
    MUSTER_RETURN_IF_ERROR(data_group->Wait(a));
    MUSTER_RETURN_IF_ERROR(world.Wait(b));
    EXPECT_EQ(from_data[0], 2 * stage + 1 - data);
    EXPECT_EQ(from_pipeline[0], data + 2 * (1 - stage));
    EXPECT_EQ(from_world[0], opposite);

    // Groups of the same two ranks are apart as well.
    MUSTER_ASSIGN_OR_RETURN(auto forward, pipeline->Split({0, 1}, absl::StrCat("forward/", data)));
    MUSTER_ASSIGN_OR_RETURN(auto backward, pipeline->Split({0, 1}, absl::StrCat("backward/", data)));
    std::vector<int> one = {1}, two = {2}, got_one = {-1}, got_two = {-1};
    if (forward->rank() == 0) {
      MUSTER_ASSIGN_OR_RETURN(const Ticket f, forward->Exchange({Send(1, one)}));
      MUSTER_ASSIGN_OR_RETURN(const Ticket g, backward->Exchange({Send(1, two)}));
      MUSTER_RETURN_IF_ERROR(forward->Wait(f));
      return backward->Wait(g);
    }
    MUSTER_ASSIGN_OR_RETURN(const Ticket g, backward->Exchange({Receive(0, got_two)}));
    MUSTER_ASSIGN_OR_RETURN(const Ticket f, forward->Exchange({Receive(0, got_one)}));
    MUSTER_RETURN_IF_ERROR(forward->Wait(f));
    MUSTER_RETURN_IF_ERROR(backward->Wait(g));
    EXPECT_THAT((std::vector<int>{got_one[0], got_two[0]}), ElementsAre(1, 2));
    return absl::OkStatus();
  })));
}

TEST_P(CollectivesTest, SplitRefusesAListThatIsNoGroup) {
  EXPECT_TRUE(AllOk(Run(2, [](Communicator& world) -> absl::Status {
    const int rank = world.rank();
    EXPECT_EQ(world.Split({1 - rank}, "without-us").status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(world.Split({rank, rank}, "twice").status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(world.Split({rank, 2}, "beyond").status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(world.Split({0, 1}, "world").status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(world.Split({0, 1}, "used").ok());
    EXPECT_EQ(world.Split({0, 1}, "used").status().code(), absl::StatusCode::kInvalidArgument);
    return Barrier(world);
  })));
}

TEST_P(CollectivesTest, UnequalSizesAreAnErrorForBothSidesThatNamesThem) {
  const auto statuses = GetParam().run(
      2,
      [](Communicator& world) -> absl::Status {
        std::vector<int> three(3), four(4);
        return world.rank() == 0 ? ExchangeAndWait(world, {Send(1, four)})
                                 : ExchangeAndWait(world, {Receive(0, three)});
      },
      absl::Seconds(1));
  for (const absl::Status& status : statuses) {
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("rank"));
  }
}

TEST_P(CollectivesTest, AfterAFailureEveryCallReturnsTheFirstError) {
  const auto statuses = Run(3, [](Communicator& world) -> absl::Status {
    auto pair = world.Split({0, 1, 2}, "all");
    if (!pair.ok()) return pair.status();
    if (world.rank() == 2) return absl::AbortedError("rank 2 has had enough");
    std::vector<int> got = {0};
    const absl::Status first = ExchangeAndWait(**pair, {Receive(2, got)});
    EXPECT_EQ(first.code(), absl::StatusCode::kUnavailable) << first;
    EXPECT_EQ((*pair)->Exchange({}).status(), first);
    EXPECT_EQ(world.Exchange({}).status(), first);
    EXPECT_EQ(world.Wait(12345), first);
    EXPECT_EQ(world.Split({0, 1}, "again").status(), first);
    return first;
  });
  EXPECT_EQ(statuses[2].code(), absl::StatusCode::kAborted);
}

TEST_P(CollectivesTest, APeerThatNeverComesIsLateByName) {
  absl::Notification failed;
  const auto statuses = GetParam().run(
      2,
      [&failed](Communicator& world) -> absl::Status {
        if (world.rank() == 1) {
          failed.WaitForNotification();
          return absl::OkStatus();
        }
        std::vector<int> got = {0};
        const absl::Time start = absl::Now();
        const absl::Status late = ExchangeAndWait(world, {Receive(1, got)});
        EXPECT_GE(absl::Now() - start, absl::Milliseconds(299));
        EXPECT_LT(absl::Now() - start, absl::Seconds(20));
        failed.Notify();
        EXPECT_THAT(std::string(late.message()),
                    testing::AllOf(testing::HasSubstr("group world, operation #0"), testing::HasSubstr("from rank 1")));
        return late;
      },
      absl::Milliseconds(300));
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kDeadlineExceeded) << statuses[0];
}

}  // namespace
}  // namespace muster
