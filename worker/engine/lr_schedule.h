// The learning rate of an update.
#pragma once

#include <cstdint>

#include "worker/engine/engine_config.h"

namespace muster {

// Updates that the decay of a warm-up-stable-decay schedule takes: schedule.decay_steps, or a tenth of all steps, which
// is about as good as longer ones (Hu et al. 2024, MiniCPM).
int64_t DecaySteps(const TrainingOptions& training);

// With s = update - 1, w = warmup_steps, n = steps, d = DecaySteps, r = min_lr_ratio and p the part of the decay that
// lies behind:
//   s <  w:  peak (s + 1) / w
//   s >= w:  peak (r + (1 - r) (1 + cos(pi p)) / 2)   cosine, p = (s - w) / (n - w) (Loshchilov and Hutter 2017, eq. 5)
//            peak (r + (1 - r) (1 - p))               linear, p as above (as in Devlin et al. 2019, BERT, there to r =
//            0) peak (r + (1 - r) (1 - p))               wsd, p = max(0, s - (n - d)) / d (Haegele et al. 2024) peak
//            constant
// An update is a step that was not skipped: schedules count as Megatron-LM's do, which stand still when the loss scaler
// throws a step away.
// REQUIRES: 1 <= update <= training.steps.
double LearningRate(const TrainingOptions& training, int64_t update);

}  // namespace muster
