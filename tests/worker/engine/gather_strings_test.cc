#include "worker/engine/gather_strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/status_macros.h"
#include "tests/support/rank_harness.h"

namespace muster {
namespace {

TEST(GatherStrings, GivesEveryRankAllTextsInOrder) {
  EXPECT_TRUE(AllOk(RunRanks(3, [](Communicator& world) -> absl::Status {
    const std::string mine(static_cast<size_t>(world.rank()) * 1000, static_cast<char>('a' + world.rank()));
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> texts, GatherStrings(world, mine));
    EXPECT_THAT(texts, testing::ElementsAre("", std::string(1000, 'b'), std::string(2000, 'c')));
    return absl::OkStatus();
  })));
}

TEST(ShareStatus, IsOkWhenAllRanksAre) {
  EXPECT_TRUE(AllOk(RunRanks(3, [](Communicator& world) { return ShareStatus(world, absl::OkStatus()); })));
}

TEST(ShareStatus, GivesEveryRankTheFirstErrorAndWhoseItIs) {
  RunRanks(4, [](Communicator& world) -> absl::Status {
    const absl::Status mine = world.rank() < 2 ? absl::OkStatus() : absl::ResourceExhaustedError("no space left");
    const absl::Status shared = ShareStatus(world, mine);
    EXPECT_EQ(shared.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(shared.message(), "rank 2: no space left");
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace muster
