#include "worker/engine/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace muster {
namespace {

// Of the way from the peak to the minimum, 0 to 1.
double Descent(const TrainingOptions& training, int64_t done) {
  const ScheduleOptions& schedule = training.schedule;
  const auto part_behind = [done](int64_t begin, int64_t length) {
    return static_cast<double>(std::max<int64_t>(0, done - begin)) / static_cast<double>(length);
  };
  switch (schedule.decay) {
    case ScheduleOptions::Decay::kConstant:
      return 0;
    case ScheduleOptions::Decay::kCosine:
      return (1 -
              std::cos(std::numbers::pi * part_behind(schedule.warmup_steps, training.steps - schedule.warmup_steps))) /
             2;
    case ScheduleOptions::Decay::kLinear:
      return part_behind(schedule.warmup_steps, training.steps - schedule.warmup_steps);
    case ScheduleOptions::Decay::kWarmupStableDecay:
      return part_behind(training.steps - DecaySteps(training), DecaySteps(training));
  }
  return 0;
}

}  // namespace

int64_t DecaySteps(const TrainingOptions& training) {
  return training.schedule.decay_steps > 0 ? training.schedule.decay_steps : std::max<int64_t>(1, training.steps / 10);
}

double LearningRate(const TrainingOptions& training, int64_t update) {
  const double peak = training.adamw.learning_rate;
  const ScheduleOptions& schedule = training.schedule;
  const int64_t done = update - 1;
  if (done < schedule.warmup_steps)
    return peak * static_cast<double>(update) / static_cast<double>(schedule.warmup_steps);
  return peak * (1 - (1 - schedule.min_lr_ratio) * Descent(training, done));
}

}  // namespace muster
