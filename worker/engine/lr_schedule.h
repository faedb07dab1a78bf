// The learning rate of a step.
#pragma once

#include <cstdint>

#include "worker/engine/engine_config.h"

namespace muster {

// With s = step - 1, w = warmup_steps, n = steps, r = min_lr_ratio:
//   s <  w:  peak (s + 1) / w
//   s >= w:  peak (r + (1 - r) (1 + cos(pi (s - w) / (n - w))) / 2)    cosine (Loshchilov and Hutter 2017, equation 5)
//            peak                                                       constant
// REQUIRES: 1 <= step <= training.steps.
double LearningRate(const TrainingOptions& training, int64_t step);

}  // namespace muster
