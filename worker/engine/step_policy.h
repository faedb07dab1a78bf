// Decides, from what all ranks agreed on, what becomes of a step: whether its gradients update the weights, are thrown
// away, or send the job back. Fp16's overflows, values that are not finite and spikes of the loss are judged here, in
// this order.
//
// Owned by the trainer, for its thread. It asks nobody: equal verdicts and an equal history give equal decisions, on
// every rank and after a resume.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/formats/checkpoint_manifest.h"
#include "worker/engine/engine_config.h"
#include "worker/engine/loss_scaler.h"
#include "worker/engine/loss_spike.h"
#include "worker/engine/step_vote.h"

namespace muster {

enum class StepAction {
  kUpdate,
  kSkip,      // the samples count as consumed, nothing is updated
  kFallBack,  // kSkip, and from the next step on compute in bf16
  kRewind,
  kFail,
};

struct StepDecision {
  StepAction action = StepAction::kUpdate;
  std::string event;   // type of the event that people are told; empty: nothing to tell
  std::string reason;  // what it says, without the step; empty for kNonFiniteEvent, which diagnosis.h explains
};

inline constexpr char kNonFiniteEvent[] = "NON_FINITE";
inline constexpr char kLossSpikeEvent[] = "LOSS_SPIKE";

// What the policy remembers: in every checkpoint.
struct StepPolicyState {
  std::optional<LossScalerState> loss_scaler;
  StepHistory history;
};

class StepPolicy {
 public:
  // So many spikes in a row under `skip` are no spikes but what the loss is now: it takes the new level for normal.
  static constexpr int64_t kMostSpikesInARow = 16;

  StepPolicy(const PolicyOptions& options, Precision precision, const StepPolicyState& state);

  // What the loss is multiplied with in the next backward pass; 1 but for fp16.
  double loss_scale() const { return scaler_.has_value() ? scaler_->scale() : 1; }
  // Whether this run computes in bf16 though fp16 was asked for.
  bool fell_back() const { return scaler_.has_value() && scaler_->state().fell_back; }
  int64_t skipped_steps() const { return history_.skipped_steps; }

  // Once a step. The gradient norm of `verdict` is without the loss scale.
  StepDecision Judge(const StepVerdict& verdict);

  StepPolicyState state() const;

 private:
  StepDecision Decide(const StepVerdict& verdict);
  StepDecision OnSpike(double loss);

  const PolicyOptions options_;
  std::optional<LossScaler> scaler_;  // fp16
  LossSpikeDetector spikes_;
  StepHistory history_;  // but for the losses, which `spikes_` has
};

}  // namespace muster
