#include "worker/engine/step_policy.h"

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

StepAction ActionOf(PolicyOptions::Reaction reaction) {
  switch (reaction) {
    case PolicyOptions::Reaction::kSkip:
      return StepAction::kSkip;
    case PolicyOptions::Reaction::kRewind:
      return StepAction::kRewind;
    case PolicyOptions::Reaction::kNone:
      break;
  }
  return StepAction::kFail;
}

}  // namespace

StepPolicy::StepPolicy(const PolicyOptions& options, Precision precision, const StepPolicyState& state)
    : options_(options), spikes_(options.spike_threshold, state.history.recent_losses), history_(state.history) {
  if (precision != Precision::kFp16) return;
  scaler_ = state.loss_scaler.has_value() ? LossScaler(*state.loss_scaler) : LossScaler();
}

StepDecision StepPolicy::Judge(const StepVerdict& verdict) {
  StepDecision decision = Decide(verdict);
  if (decision.action == StepAction::kSkip || decision.action == StepAction::kFallBack) ++history_.skipped_steps;
  if (decision.action == StepAction::kUpdate) spikes_.Accept(verdict.loss);
  return decision;
}

StepDecision StepPolicy::Decide(const StepVerdict& verdict) {
  // A batch without a counted target has no loss in any precision.
  if (scaler_.has_value() && !fell_back() && verdict.counted_targets > 0) {
    switch (scaler_->Update(!verdict.finite())) {
      case LossScaler::Verdict::kClean:
        break;
      case LossScaler::Verdict::kOverflow:
        return {.action = StepAction::kSkip};
      case LossScaler::Verdict::kAtFloor:
        scaler_->FallBack();
        return {.action = StepAction::kFallBack,
                .event = "FP16_FELL_BACK",
                .reason = absl::StrCat("fp16 overflows though the loss is not scaled any more (loss ", verdict.loss,
                                       ", gradient norm ", verdict.gradient_norm, "); it goes on in bf16")};
    }
  }
  if (!verdict.finite()) return {.action = ActionOf(options_.non_finite), .event = kNonFiniteEvent};
  if (options_.loss_spike != PolicyOptions::Reaction::kNone && spikes_.IsSpike(verdict.loss)) {
    return OnSpike(verdict.loss);
  }
  history_.spikes_in_a_row = 0;
  return {};
}

StepDecision StepPolicy::OnSpike(double loss) {
  const std::string reason =
      absl::StrCat("loss ", loss, " is above ", spikes_.Limit(), ", for a median of ", spikes_.Median());
  if (++history_.spikes_in_a_row <= kMostSpikesInARow) {
    return {.action = ActionOf(options_.loss_spike), .event = kLossSpikeEvent, .reason = reason};
  }
  history_.spikes_in_a_row = 0;
  spikes_.Forget();
  return {.event = "LOSS_LEVEL_ACCEPTED",
          .reason = absl::StrCat(reason, "; as ", kMostSpikesInARow,
                                 " steps were skipped in a row, the loss is taken to be like this now")};
}

StepPolicyState StepPolicy::state() const {
  StepPolicyState state{.history = history_};
  if (scaler_.has_value()) state.loss_scaler = scaler_->state();
  state.history.recent_losses = spikes_.accepted();
  return state;
}

}  // namespace muster
