#include "worker/engine/step_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace muster {
namespace {

using Reaction = PolicyOptions::Reaction;
using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

StepVerdict Verdict(double loss, double gradient_norm = 1) {
  StepVerdict verdict;
  verdict.loss = loss;
  verdict.gradient_norm = gradient_norm;
  verdict.counted_targets = 100;
  return verdict;
}

// A policy that has accepted twenty losses of 3.
StepPolicy Settled(const PolicyOptions& options, Precision precision = Precision::kBf16) {
  StepPolicy policy(options, precision, {});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(policy.Judge(Verdict(3)).action, StepAction::kUpdate);
  return policy;
}

TEST(StepPolicy, IgnoresSpikesAndFailsOnWhatIsNotFiniteUnlessTold) {
  StepPolicy policy = Settled({});
  EXPECT_EQ(policy.Judge(Verdict(30)).action, StepAction::kUpdate);
  const StepDecision decision = policy.Judge(Verdict(3, kNaN));
  EXPECT_EQ(decision.action, StepAction::kFail);
  EXPECT_EQ(decision.event, kNonFiniteEvent);
  EXPECT_EQ(policy.loss_scale(), 1);
}

TEST(StepPolicy, DoesAsThePolicySays) {
  StepPolicy policy = Settled({.loss_spike = Reaction::kRewind, .non_finite = Reaction::kSkip});
  EXPECT_EQ(policy.Judge(Verdict(kNaN)).action, StepAction::kSkip);
  EXPECT_EQ(policy.skipped_steps(), 1);
  const StepDecision spike = policy.Judge(Verdict(4));
  EXPECT_EQ(spike.action, StepAction::kRewind);
  EXPECT_EQ(spike.event, kLossSpikeEvent);
  EXPECT_THAT(spike.reason, HasSubstr("loss 4 is above 3.3"));
  EXPECT_EQ(policy.skipped_steps(), 1) << "a rewound step is not skipped, it never was";
}

TEST(StepPolicy, ASkippedSpikeDoesNotCountAsNormalUntilManyCameInARow) {
  StepPolicy policy = Settled({.loss_spike = Reaction::kSkip});
  for (int64_t i = 0; i < StepPolicy::kMostSpikesInARow; ++i) {
    EXPECT_EQ(policy.Judge(Verdict(9)).action, StepAction::kSkip);
  }
  const StepDecision accepted = policy.Judge(Verdict(9));
  EXPECT_EQ(accepted.action, StepAction::kUpdate);
  EXPECT_EQ(accepted.event, "LOSS_LEVEL_ACCEPTED");
  EXPECT_EQ(policy.Judge(Verdict(9)).action, StepAction::kUpdate);
  EXPECT_EQ(policy.skipped_steps(), StepPolicy::kMostSpikesInARow);
}

TEST(StepPolicy, AnOverflowOfFp16IsSkippedWhateverThePolicySays) {
  StepPolicy policy = Settled({.non_finite = Reaction::kNone}, Precision::kFp16);
  EXPECT_EQ(policy.loss_scale(), 65536);
  const StepDecision overflow = policy.Judge(Verdict(3, std::numeric_limits<double>::infinity()));
  EXPECT_EQ(overflow.action, StepAction::kSkip);
  EXPECT_EQ(overflow.event, "") << "it is how the scale is found";
  policy.Judge(Verdict(3, kNaN));
  EXPECT_EQ(policy.loss_scale(), 32768);
  EXPECT_EQ(policy.skipped_steps(), 2);
}

TEST(StepPolicy, AtTheFloorItFallsBackOnceAndThenJudgesAsInBf16) {
  StepPolicy policy = Settled({}, Precision::kFp16);
  for (int i = 0; i < 17; ++i) EXPECT_EQ(policy.Judge(Verdict(3, kNaN)).action, StepAction::kSkip);
  const StepDecision decision = policy.Judge(Verdict(3, kNaN));
  EXPECT_EQ(decision.action, StepAction::kFallBack);
  EXPECT_EQ(decision.event, "FP16_FELL_BACK");
  EXPECT_EQ(policy.skipped_steps(), 18);
  EXPECT_TRUE(policy.fell_back());
  EXPECT_EQ(policy.loss_scale(), 1);
  EXPECT_EQ(policy.Judge(Verdict(3)).action, StepAction::kUpdate);
  EXPECT_EQ(policy.Judge(Verdict(kNaN)).action, StepAction::kFail);
}

TEST(StepPolicy, ABatchWithoutTargetsIsNoOverflow) {
  StepPolicy policy = Settled({}, Precision::kFp16);
  StepVerdict empty = Verdict(kNaN);
  empty.counted_targets = 0;
  EXPECT_EQ(policy.Judge(empty).action, StepAction::kFail);
  EXPECT_EQ(policy.state().loss_scaler->hysteresis, LossScaler::kHysteresis);
}

TEST(StepPolicy, ResumedFromItsStateDecidesAsItWouldHave) {
  const PolicyOptions options{.loss_spike = Reaction::kSkip};
  StepPolicy whole = Settled(options, Precision::kFp16);
  whole.Judge(Verdict(3, kNaN));
  whole.Judge(Verdict(9));
  StepPolicy resumed(options, Precision::kFp16, whole.state());
  EXPECT_EQ(resumed.skipped_steps(), 2);
  for (const double loss : {9.0, 3.1, kNaN, 3.4, 3.0, 5.0}) {
    EXPECT_EQ(resumed.Judge(Verdict(loss)).action, whole.Judge(Verdict(loss)).action) << loss;
    EXPECT_EQ(resumed.loss_scale(), whole.loss_scale());
  }
  EXPECT_EQ(resumed.state().history.recent_losses, whole.state().history.recent_losses);
  EXPECT_EQ(resumed.state().history.spikes_in_a_row, whole.state().history.spikes_in_a_row);
}

TEST(StepPolicy, OtherPrecisionsForgetTheScaleOfACheckpoint) {
  StepPolicyState state;
  state.loss_scaler = LossScalerState{.scale = 8, .fell_back = true};
  StepPolicy policy({}, Precision::kBf16, state);
  EXPECT_EQ(policy.loss_scale(), 1);
  EXPECT_FALSE(policy.state().loss_scaler.has_value());
}

}  // namespace
}  // namespace muster
