#include "common/plan/arena.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/plan/planner_oracle.h"

namespace muster {
namespace {

TEST(ArenaTest, PlacesThePublishedExample) {
  for (const nlohmann::json& row : PlannerOracle("arena").at("rows")) {
    std::vector<ArenaRequest> requests;
    for (const nlohmann::json& tensor : row.at("tensors")) requests.push_back({tensor[1], {tensor[2], tensor[3]}});
    const ArenaPlan plan = PlaceGreedyBySize(requests);
    EXPECT_EQ(plan.offsets, row.at("offsets").get<std::vector<int64_t>>());
    EXPECT_EQ(plan.bytes, row.at("arena_bytes").get<int64_t>());
    EXPECT_EQ(plan.lower_bound_bytes, row.at("lower_bound_bytes").get<int64_t>());
  }
}

TEST(ArenaTest, NothingNeedsNoMemory) {
  const ArenaPlan plan = PlaceGreedyBySize({});
  EXPECT_EQ(plan.bytes, 0);
  EXPECT_EQ(plan.lower_bound_bytes, 0);
}

std::vector<Lifetime> LifetimesOf(const ArenaRequest& request) {
  std::vector<Lifetime> lifetimes = {request.lifetime};
  if (request.again.has_value()) lifetimes.push_back(*request.again);
  return lifetimes;
}

bool LiveTogether(const ArenaRequest& a, const ArenaRequest& b) {
  for (const Lifetime& of_a : LifetimesOf(a)) {
    for (const Lifetime& of_b : LifetimesOf(b)) {
      if (of_a.first_tick <= of_b.last_tick && of_b.first_tick <= of_a.last_tick) return true;
    }
  }
  return false;
}

TEST(ArenaTest, ARequestThatLivesTwiceIsFreeInBetween) {
  const ArenaPlan plan = PlaceGreedyBySize({{100, {0, 0}, Lifetime{5, 5}}, {80, {1, 4}}, {60, {5, 6}}});
  EXPECT_THAT(plan.offsets, testing::ElementsAre(0, 0, 100));
  EXPECT_EQ(plan.lower_bound_bytes, 160);
}

TEST(ArenaTest, RandomRequestsThatLiveTogetherNeverShareAByte) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<ArenaRequest> requests(40);
    for (ArenaRequest& request : requests) {
      request.bytes = static_cast<int64_t>(random() % 100);
      request.lifetime.first_tick = static_cast<int64_t>(random() % 30);
      request.lifetime.last_tick = request.lifetime.first_tick + static_cast<int64_t>(random() % 8);
      if (random() % 3 == 0) {
        const int64_t first = request.lifetime.last_tick + 2;
        request.again = Lifetime{first, first + static_cast<int64_t>(random() % 4)};
      }
    }
    const ArenaPlan plan = PlaceGreedyBySize(requests);
    EXPECT_GE(plan.bytes, plan.lower_bound_bytes);
    for (size_t a = 0; a < requests.size(); ++a) {
      EXPECT_GE(plan.offsets[a], 0);
      EXPECT_LE(plan.offsets[a] + requests[a].bytes, plan.bytes);
      for (size_t b = 0; b < a; ++b) {
        const bool together = LiveTogether(requests[a], requests[b]);
        const bool apart = plan.offsets[a] + requests[a].bytes <= plan.offsets[b] ||
                           plan.offsets[b] + requests[b].bytes <= plan.offsets[a];
        EXPECT_TRUE(!together || apart || requests[a].bytes == 0 || requests[b].bytes == 0)
            << "round " << round << ": " << a << " and " << b;
      }
    }
  }
}

LedgerEntry Entry(const std::string& name, int64_t bytes, int64_t slots, Lifetime lifetime,
                  MemorySpace space = MemorySpace::kDevice) {
  LedgerEntry entry;
  entry.name = name;
  entry.slot_bytes = bytes;
  entry.slots = slots;
  entry.lifetime = lifetime;
  entry.space = space;
  return entry;
}

TEST(ArenaTest, LedgerEntriesOfTheWholeStepComeFirstAndTouch) {
  Ledger ledger;
  ledger.ticks = 10;
  ledger.entries = {Entry("transient", 1024, 1, {3, 4}), Entry("first", 256, 1, {0, 9}), Entry("other", 512, 1, {6, 7}),
                    Entry("second", 512, 2, {0, 9}), Entry("batch", 768, 1, {0, 9}, MemorySpace::kHost)};
  const ArenaPlan device = PlaceLedger(ledger, MemorySpace::kDevice);
  EXPECT_THAT(device.offsets, testing::ElementsAre(1280, 0, 1280, 256, -1));
  EXPECT_EQ(device.bytes, 2304);
  EXPECT_EQ(device.lower_bound_bytes, 2304);
  const ArenaPlan host = PlaceLedger(ledger, MemorySpace::kHost);
  EXPECT_THAT(host.offsets, testing::ElementsAre(-1, -1, -1, -1, 0));
  EXPECT_EQ(host.bytes, 768);
  EXPECT_EQ(PlaceLedger(ledger, MemorySpace::kPinned).bytes, 0);
}

}  // namespace
}  // namespace muster
