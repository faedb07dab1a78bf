#include "worker/engine/loss_scaler.h"

#include <algorithm>

namespace muster {

LossScaler::Verdict LossScaler::Update(bool overflow) {
  if (overflow) {
    state_.good_steps = 0;
    state_.hysteresis = std::max<int64_t>(0, state_.hysteresis - 1);
    if (state_.hysteresis > 0) return Verdict::kOverflow;
    if (state_.scale <= kFloor) return Verdict::kAtFloor;
    state_.scale = std::max(kFloor, state_.scale / 2);
    return Verdict::kOverflow;
  }
  if (++state_.good_steps == kGrowthInterval) {
    state_.good_steps = 0;
    state_.hysteresis = kHysteresis;
    state_.scale *= 2;
  }
  return Verdict::kClean;
}

void LossScaler::FallBack() { state_ = {.scale = 1, .fell_back = true}; }

}  // namespace muster
