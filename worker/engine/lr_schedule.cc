#include "worker/engine/lr_schedule.h"

#include <cmath>
#include <numbers>

namespace muster {

double LearningRate(const TrainingOptions& training, int64_t step) {
  const double peak = training.adamw.learning_rate;
  const ScheduleOptions& schedule = training.schedule;
  const int64_t done = step - 1;
  if (done < schedule.warmup_steps)
    return peak * static_cast<double>(step) / static_cast<double>(schedule.warmup_steps);
  if (schedule.decay == ScheduleOptions::Decay::kConstant) return peak;
  const double progress =
      static_cast<double>(done - schedule.warmup_steps) / static_cast<double>(training.steps - schedule.warmup_steps);
  const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return peak * (schedule.min_lr_ratio + (1 - schedule.min_lr_ratio) * cosine);
}

}  // namespace muster
