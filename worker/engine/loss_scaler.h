// Dynamic loss scaling for fp16: small gradients would vanish in a type of 5 exponent bits, so the loss is multiplied
// before the backward pass and the gradients divided behind it. A scale that is too large shows as infinite gradients.
//
// The rule is that of Megatron-LM's DynamicGradScaler (megatron/core/optimizer/grad_scaler.py): halve after an
// overflow, once the hysteresis is used up; double after kGrowthInterval clean steps in a row, which also renews the
// hysteresis. Unlike there an overflow at the smallest scale does not end the run: see Verdict::kAtFloor.
//
// Owned by the step policy, for the trainer's thread. Every rank feeds it the same and has the same scale.
#pragma once

#include <cstdint>

#include "common/formats/checkpoint_manifest.h"

namespace muster {

class LossScaler {
 public:
  static constexpr double kInitialScale = 65536;  // 2^16, just below where a gradient of 1 overflows
  static constexpr double kFloor = 1;             // of no use below: nothing is scaled up
  static constexpr int64_t kGrowthInterval = 1000;
  static constexpr int64_t kHysteresis = 2;  // overflows until the scale falls: one alone may be a bad batch

  enum class Verdict {
    kClean,
    kOverflow,  // the step is void
    kAtFloor,   // and so is every later one: fp16 cannot represent this run's gradients
  };

  // From the beginning.
  LossScaler() : LossScaler({.scale = kInitialScale, .hysteresis = kHysteresis}) {}
  explicit LossScaler(const LossScalerState& state) : state_(state) {}

  double scale() const { return state_.scale; }
  const LossScalerState& state() const { return state_; }

  // After each step, with whether its gradients or loss overflowed.
  Verdict Update(bool overflow);

  // From now on training goes on in bf16, whose range is that of f32: the scale is 1 for good.
  void FallBack();

 private:
  LossScalerState state_;
};

}  // namespace muster
