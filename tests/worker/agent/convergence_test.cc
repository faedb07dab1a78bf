#include "worker/agent/convergence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using Kind = ConvergenceStep::Kind;
using testing::ElementsAre;
using testing::IsEmpty;

void Want(v1::Desired& desired, int64_t attempt, int64_t rank, v1::AssignmentAction action = v1::RUN) {
  v1::Assignment& assignment = *desired.add_assignments();
  assignment.set_job_id("job-1");
  assignment.set_attempt(attempt);
  assignment.set_rank(rank);
  assignment.set_device(rank);
  assignment.set_action(action);
}

RankKey Key(int64_t attempt, int64_t rank) { return RankKey{"job-1", attempt, rank}; }

testing::Matcher<const ConvergenceStep&> Step(Kind kind, const RankKey& rank) {
  return testing::AllOf(testing::Field(&ConvergenceStep::kind, kind), testing::Field(&ConvergenceStep::rank, rank));
}

TEST(ConvergenceTest, StartsWhatIsMissingAndNothingTwice) {
  v1::Desired desired;
  Want(desired, 1, 0);
  Want(desired, 1, 1);
  std::map<RankKey, LocalRank> local;
  EXPECT_THAT(Converge(desired, local), ElementsAre(Step(Kind::kStart, Key(1, 0)), Step(Kind::kStart, Key(1, 1))));
  local[Key(1, 0)] = {.device = 0};
  local[Key(1, 1)] = {.device = 1};
  EXPECT_THAT(Converge(desired, local), IsEmpty());  // the same message again
}

TEST(ConvergenceTest, NeverStartsARankAgainThatEnded) {
  v1::Desired desired;
  Want(desired, 1, 0);
  EXPECT_THAT(Converge(desired, {{Key(1, 0), LocalRank{.ended = true}}}), IsEmpty());
}

TEST(ConvergenceTest, StopsWhatIsNotDesired) {
  EXPECT_THAT(Converge({}, {{Key(1, 0), LocalRank{}}}), ElementsAre(Step(Kind::kStop, Key(1, 0))));
  EXPECT_THAT(Converge({}, {{Key(1, 0), LocalRank{.asked_to_stop = true}}}), IsEmpty());
}

TEST(ConvergenceTest, KillsAnOlderAttemptAndWaitsForItsDevice) {
  v1::Desired desired;
  Want(desired, 2, 0);
  std::map<RankKey, LocalRank> local{{Key(1, 0), LocalRank{.device = 0}}};
  EXPECT_THAT(Converge(desired, local), ElementsAre(Step(Kind::kKill, Key(1, 0))));
  local[Key(1, 0)].asked_to_die = true;
  EXPECT_THAT(Converge(desired, local), IsEmpty());
  local[Key(1, 0)].ended = true;
  EXPECT_THAT(Converge(desired, local), ElementsAre(Step(Kind::kStart, Key(2, 0))));
}

TEST(ConvergenceTest, StopsAndKillsOnceAsAsked) {
  v1::Desired desired;
  Want(desired, 1, 0, v1::STOP);
  std::map<RankKey, LocalRank> local{{Key(1, 0), LocalRank{}}};
  EXPECT_THAT(Converge(desired, local), ElementsAre(Step(Kind::kStop, Key(1, 0))));
  local[Key(1, 0)].asked_to_stop = true;
  EXPECT_THAT(Converge(desired, local), IsEmpty());
  desired.mutable_assignments(0)->set_action(v1::KILL);
  EXPECT_THAT(Converge(desired, local), ElementsAre(Step(Kind::kKill, Key(1, 0))));
}

TEST(ConvergenceTest, SaysThatWhatShouldStopIsNotHere) {
  v1::Desired desired;
  Want(desired, 1, 0, v1::KILL);
  EXPECT_THAT(Converge(desired, {}), ElementsAre(Step(Kind::kReportAbsent, Key(1, 0))));
}

}  // namespace
}  // namespace muster
