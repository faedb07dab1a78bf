#include "server/job/gang.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

constexpr GangMember kDead{true, true};
constexpr GangMember kDeadFarAway{true, false};
constexpr GangMember kAlive{false, true};
constexpr GangMember kUnreachable{false, false};

bool IsDead(const std::vector<GangMember>& members, bool fence_passed = false) {
  return GangIsDead(members, fence_passed);
}

TEST(GangTest, IsDeadWhenEveryRankIsConfirmedDead) {
  EXPECT_TRUE(IsDead({kDead, kDead}));
  EXPECT_TRUE(IsDead({}));
}

TEST(GangTest, LivesWhileAReachableRankIsNotConfirmedDead) {
  EXPECT_FALSE(IsDead({kDead, kAlive}));
  EXPECT_FALSE(IsDead({kDead, kAlive}, true));
  EXPECT_FALSE(IsDead({kAlive}));
}

TEST(GangTest, OneConfirmedDeathAndNobodyReachableAliveIsEnough) {
  EXPECT_TRUE(IsDead({kDead, kUnreachable, kUnreachable}));
  EXPECT_TRUE(IsDead({kDeadFarAway, kUnreachable}));
}

TEST(GangTest, WithoutAnyConfirmationOnlyTheFenceDecides) {
  EXPECT_FALSE(IsDead({kUnreachable, kUnreachable}));
  EXPECT_TRUE(IsDead({kUnreachable, kUnreachable}, true));
}

}  // namespace
}  // namespace muster
