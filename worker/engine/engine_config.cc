#include "worker/engine/engine_config.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/layout_check.h"
#include "worker/engine/lr_schedule.h"

namespace muster {
namespace {

absl::Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

// The planner's own checks, so that the engine refuses what the planner refuses and in the same words.
absl::Status CheckModelAndLayout(const EngineConfig& config) {
  const std::vector<Problem> problems = CheckLayout({.shape = config.model,
                                                     .layout = config.layout,
                                                     .ranks = config.layout.ranks(),
                                                     .global_batch = config.layout.global_batch()});
  if (problems.empty()) return absl::OkStatus();
  const Problem& problem = problems.front();
  const std::string message = absl::StrCat(problem.field, ": ", problem.message);
  return problem.code == "NOT_SUPPORTED_YET" ? absl::UnimplementedError(message) : Invalid(message);
}

absl::Status CheckStages(const EngineConfig& config) {
  const Layout& layout = config.layout;
  if (static_cast<int64_t>(config.stages.size()) != layout.virtual_stages()) {
    return Invalid(
        absl::StrCat(config.stages.size(), " stages are given, parallelism.pipeline is ", layout.pipeline,
                     layout.interleave == 1 ? "" : absl::StrCat(" and parallelism.interleave ", layout.interleave)));
  }
  int64_t next = 0;
  for (size_t i = 0; i < config.stages.size(); ++i) {
    const UnitRange& stage = config.stages[i];
    if (stage.first != next || stage.last <= stage.first) {
      return Invalid(absl::StrCat("stage ", i, " is units ", stage.first, " to ", stage.last, ", expected some from ",
                                  next, " on"));
    }
    next = stage.last;
  }
  if (next != config.model.units()) {
    return Invalid(absl::StrCat("the stages end at unit ", next, ", the model has ", config.model.units()));
  }
  return absl::OkStatus();
}

absl::Status CheckTraining(const TrainingOptions& training) {
  const AdamWOptions& adamw = training.adamw;
  if (training.steps < 1) return Invalid("training.steps must be at least 1");
  if (!(adamw.learning_rate > 0)) return Invalid("optimizer.adamw.lr must be above 0");
  if (!(adamw.beta1 >= 0 && adamw.beta1 < 1)) return Invalid("optimizer.adamw.beta1 must be in [0, 1)");
  if (!(adamw.beta2 >= 0 && adamw.beta2 < 1)) return Invalid("optimizer.adamw.beta2 must be in [0, 1)");
  if (!(adamw.epsilon > 0)) return Invalid("optimizer.adamw.eps must be above 0");
  if (!(adamw.weight_decay >= 0)) return Invalid("optimizer.adamw.weight_decay must not be negative");
  if (!(training.clip_grad_norm >= 0)) return Invalid("training.clip_grad_norm must not be negative");
  if (training.schedule.warmup_steps < 0) return Invalid("training.schedule.warmup_steps must not be negative");
  if (!(training.schedule.min_lr_ratio >= 0 && training.schedule.min_lr_ratio <= 1)) {
    return Invalid("training.schedule.min_lr_ratio must be in [0, 1]");
  }
  if (training.schedule.decay_steps < 0) return Invalid("training.schedule.decay_steps must not be negative");
  if (training.schedule.decay == ScheduleOptions::Decay::kWarmupStableDecay &&
      training.schedule.warmup_steps + DecaySteps(training) > training.steps) {
    return Invalid(absl::StrCat("training.schedule.decay_steps: a warm-up of ", training.schedule.warmup_steps,
                                " and a decay of ", DecaySteps(training), " are more than ", training.steps, " steps"));
  }
  return absl::OkStatus();
}

absl::Status CheckPolicy(const PolicyOptions& policy) {
  if (!(policy.spike_threshold > 0)) return Invalid("policy.spike_threshold must be above 0");
  if (policy.rewind_steps < 0) return Invalid("policy.rewind_steps must not be negative");
  return absl::OkStatus();
}

absl::Status CheckIntervals(const EngineConfig& config) {
  const ValidationOptions& validation = config.validation;
  const bool validates = validation.every_steps > 0 || validation.before_first_step;
  if (validation.every_steps < 0) return Invalid("validation.every_steps must not be negative");
  if (validates && validation.windows < 1) return Invalid("validation.windows must be at least 1");
  if (config.checkpoint.every_steps < 0) return Invalid("checkpoint.every_steps must not be negative");
  if (config.checkpoint.every_steps > 0 && config.checkpoint.directory.empty()) {
    return Invalid("checkpoint.every_steps needs checkpoint.directory");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckEngineConfig(const EngineConfig& config) {
  MUSTER_RETURN_IF_ERROR(CheckModelAndLayout(config));
  if (config.rank < 0 || config.rank >= config.layout.ranks()) {
    return Invalid(absl::StrCat("rank ", config.rank, " of ", config.layout.ranks()));
  }
  MUSTER_RETURN_IF_ERROR(CheckStages(config));
  MUSTER_RETURN_IF_ERROR(CheckTraining(config.training));
  MUSTER_RETURN_IF_ERROR(CheckPolicy(config.policy));
  return CheckIntervals(config);
}

}  // namespace muster
