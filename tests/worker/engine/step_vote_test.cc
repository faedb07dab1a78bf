#include "worker/engine/step_vote.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/base/status_macros.h"
#include "tests/support/rank_harness.h"

namespace muster {
namespace {

// Two parameters on two ranks, each knowing one's gradient, both having counted targets.
StepBallot BallotOf(int rank) {
  StepBallot ballot{.loss_sum = 3.0 + rank, .counted_targets = 1 + rank, .squares = {0, 0}};
  ballot.squares[static_cast<size_t>(rank)] = rank == 0 ? 9 : 16;
  return ballot;
}

TEST(StepVote, AveragesTheLossAndAddsUpTheNorm) {
  EXPECT_TRUE(AllOk(RunRanks(2, [](Communicator& world) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const StepVerdict verdict, VoteOnStep(world, BallotOf(world.rank())));
    EXPECT_DOUBLE_EQ(verdict.loss, 7.0 / 3);
    EXPECT_EQ(verdict.counted_targets, 3);
    EXPECT_DOUBLE_EQ(verdict.gradient_norm, 5);
    EXPECT_FALSE(verdict.stop);
    return absl::OkStatus();
  })));
}

TEST(StepVote, StopsEveryRankWhenOneIsAsked) {
  EXPECT_TRUE(AllOk(RunRanks(3, [](Communicator& world) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const StepVerdict verdict, VoteOnStep(world, {.stop = world.rank() == 1}));
    EXPECT_TRUE(verdict.stop);
    return absl::OkStatus();
  })));
}

TEST(StepVote, TellsEveryRankOfTheCheckpointAndTheTraceThatSomeAreAskedFor) {
  EXPECT_TRUE(AllOk(RunRanks(3, [](Communicator& world) -> absl::Status {
    StepBallot ballot{.checkpoint = world.rank() == 2};
    if (world.rank() > 0) ballot.trace_steps = 5;
    MUSTER_ASSIGN_OR_RETURN(const StepVerdict verdict, VoteOnStep(world, ballot));
    EXPECT_TRUE(verdict.checkpoint);
    EXPECT_EQ(verdict.trace_steps, 5);
    EXPECT_FALSE(verdict.stop);
    return absl::OkStatus();
  })));
}

TEST(StepVote, SaysThatASaveIsDoneWhenItIsOnEveryRank) {
  EXPECT_TRUE(AllOk(RunRanks(3, [](Communicator& world) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const StepVerdict two, VoteOnStep(world, {.save_done = world.rank() != 1}));
    EXPECT_FALSE(two.saves_done);
    MUSTER_ASSIGN_OR_RETURN(const StepVerdict all, VoteOnStep(world, {.save_done = true}));
    EXPECT_TRUE(all.saves_done);
    return absl::OkStatus();
  })));
}

TEST(StepVote, ShowsEveryRankAGradientThatIsNotFinite) {
  EXPECT_TRUE(AllOk(RunRanks(2, [](Communicator& world) -> absl::Status {
    StepBallot ballot = BallotOf(world.rank());
    if (world.rank() == 1) ballot.squares[1] = std::numeric_limits<double>::infinity();
    MUSTER_ASSIGN_OR_RETURN(const StepVerdict verdict, VoteOnStep(world, ballot));
    EXPECT_FALSE(std::isfinite(verdict.gradient_norm));
    EXPECT_TRUE(std::isfinite(verdict.squares[0]));
    EXPECT_FALSE(std::isfinite(verdict.squares[1]));
    return absl::OkStatus();
  })));
}

}  // namespace
}  // namespace muster
