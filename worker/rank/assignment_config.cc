#include "worker/rank/assignment_config.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/spec/plan_proto.h"

namespace muster {
namespace {

absl::StatusOr<std::vector<UnitRange>> StagesOf(const v1::Assignment& assignment, const EngineInputs& inputs) {
  if (assignment.cuts().empty()) return inputs.stages;
  const auto& cuts = assignment.cuts();
  const bool fits = cuts.size() == inputs.layout.virtual_stages() + 1 && cuts[0] == 0 &&
                    cuts[cuts.size() - 1] == inputs.model.units() && std::is_sorted(cuts.begin(), cuts.end());
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat("cuts: they do not cut the model's ", inputs.model.units(),
                                                   " units into ", inputs.layout.virtual_stages(), " stages"));
  }
  std::vector<UnitRange> stages;
  for (int i = 0; i + 1 < cuts.size(); ++i) stages.push_back({cuts[i], cuts[i + 1]});
  return stages;
}

ScheduleOptions::Decay DecayOf(const std::string& name) {
  if (name == "constant") return ScheduleOptions::Decay::kConstant;
  if (name == "linear") return ScheduleOptions::Decay::kLinear;
  return name == "wsd" ? ScheduleOptions::Decay::kWarmupStableDecay : ScheduleOptions::Decay::kCosine;
}

PolicyOptions::Reaction ReactionOf(const std::string& name) {
  if (name == "skip") return PolicyOptions::Reaction::kSkip;
  return name == "rewind" ? PolicyOptions::Reaction::kRewind : PolicyOptions::Reaction::kNone;
}

PolicyOptions PolicyOf(const v1::PolicySpec& policy) {
  PolicyOptions options;
  options.loss_spike = ReactionOf(policy.loss_spike());
  options.non_finite = ReactionOf(policy.non_finite());
  options.spike_threshold = policy.spike_threshold();
  options.rewind_steps = policy.rewind_steps();
  return options;
}

TrainingOptions TrainingOf(const v1::JobSpec& spec) {
  const v1::TrainingSpec& training = spec.training();
  TrainingOptions options;
  options.steps = training.steps();
  options.adamw.learning_rate = training.optimizer().adamw().lr();
  options.adamw.beta1 = training.optimizer().adamw().beta1();
  options.adamw.beta2 = training.optimizer().adamw().beta2();
  options.adamw.epsilon = training.optimizer().adamw().eps();
  options.adamw.weight_decay = training.optimizer().adamw().weight_decay();
  options.schedule.warmup_steps = training.schedule().warmup_steps();
  options.schedule.decay = DecayOf(training.schedule().decay());
  options.schedule.decay_steps = training.schedule().decay_steps();
  options.schedule.min_lr_ratio = training.schedule().min_lr_ratio();
  options.clip_grad_norm = training.clip_grad_norm();
  options.seed = spec.data().seed();
  return options;
}

// every_steps 0 in a job means before the first step and after the last; to the engine it would mean never.
ValidationOptions ValidationOf(const v1::Assignment& assignment, int64_t validation_windows) {
  ValidationOptions options;
  if (validation_windows == 0) return options;
  const v1::TrainingSpec& training = assignment.resolved_spec().training();
  options.every_steps = training.validate_every_steps() > 0 ? training.validate_every_steps() : training.steps();
  options.windows = training.validation_windows() > 0 ? std::min(training.validation_windows(), validation_windows)
                                                      : validation_windows;
  options.before_first_step = assignment.resume_from().empty();
  return options;
}

absl::StatusOr<CheckpointOptions> CheckpointsOf(const v1::Assignment& assignment, const RankRoots& roots) {
  const v1::CheckpointSpec& spec = assignment.resolved_spec().checkpoint();
  CheckpointOptions options;
  // A folder of the job's own: the same file may be submitted again.
  const bool has_its_own = spec.directory().empty() || spec.directory() == assignment.job_id();
  const std::string directory =
      has_its_own ? assignment.job_id() : absl::StrCat(spec.directory(), "/", assignment.job_id());
  MUSTER_ASSIGN_OR_RETURN(options.directory, BelowRoot(roots.checkpoints, directory, "checkpoint.directory"));
  options.every_steps = spec.every_steps();
  options.attempt = assignment.attempt();
  options.job_id = assignment.job_id();
  options.next_sample = assignment.next_sample();
  if (!assignment.resume_from().empty()) {
    MUSTER_ASSIGN_OR_RETURN(options.resume_from, BelowRoot(roots.checkpoints, assignment.resume_from(), "resume_from"));
  }
  google::protobuf::util::JsonPrintOptions print;
  print.preserve_proto_field_names = true;
  if (!google::protobuf::util::MessageToJsonString(assignment.resolved_spec(), &options.spec_json, print).ok()) {
    return absl::InternalError("the resolved spec cannot be printed as JSON");
  }
  return options;
}

absl::StatusOr<GptSampleSourceOptions> DataOf(const v1::JobSpec& spec,
                                              const google::protobuf::RepeatedPtrField<v1::DatasetSpec>& datasets,
                                              const std::string& field, const RankRoots& roots) {
  GptSampleSourceOptions options;
  for (int i = 0; i < datasets.size(); ++i) {
    WeightedDataset& dataset = options.datasets.emplace_back();
    MUSTER_ASSIGN_OR_RETURN(dataset.prefix,
                            BelowRoot(roots.data, datasets[i].path(), absl::StrCat(field, "[", i, "].path")));
    dataset.weight = datasets[i].weight() > 0 ? datasets[i].weight() : 1;
  }
  options.sequence_length = spec.training().sequence_length();
  options.vocab = spec.model().vocab();
  options.seed = spec.data().seed();
  options.document_mask = spec.data().document_mask();
  options.packing = !spec.data().has_packing() || spec.data().packing();
  return options;
}

}  // namespace

absl::StatusOr<v1::Assignment> ReadAssignment(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  v1::Assignment assignment;
  const bool parsed = absl::EndsWith(path, ".json")
                          ? google::protobuf::util::JsonStringToMessage(bytes, &assignment).ok()
                          : assignment.ParseFromString(bytes);
  if (!parsed) return absl::InvalidArgumentError(absl::StrCat(path, " is not an assignment of muster.v1"));
  return assignment;
}

absl::StatusOr<EngineConfig> MakeEngineConfig(const v1::Assignment& assignment, const RankRoots& roots,
                                              int64_t validation_windows) {
  const EngineInputs inputs = ToEngineInputs(assignment.resolved_spec());
  EngineConfig config;
  config.model = inputs.model;
  config.layout = inputs.layout;
  config.rank = assignment.rank();
  MUSTER_ASSIGN_OR_RETURN(config.stages, StagesOf(assignment, inputs));
  config.training = TrainingOf(assignment.resolved_spec());
  config.policy = PolicyOf(assignment.resolved_spec().policy());
  config.validation = ValidationOf(assignment, validation_windows);
  MUSTER_ASSIGN_OR_RETURN(config.checkpoint, CheckpointsOf(assignment, roots));
  config.loader_threads = assignment.resolved_spec().data().loader_threads();
  return config;
}

absl::StatusOr<GptSampleSourceOptions> TrainingData(const v1::JobSpec& resolved, const RankRoots& roots) {
  return DataOf(resolved, resolved.data().train(), "data.train", roots);
}

absl::StatusOr<GptSampleSourceOptions> ValidationData(const v1::JobSpec& resolved, const RankRoots& roots) {
  MUSTER_ASSIGN_OR_RETURN(GptSampleSourceOptions options,
                          DataOf(resolved, resolved.data().validation(), "data.validation", roots));
  options.order = SampleOrder::kSequential;
  return options;
}

absl::StatusOr<std::string> BelowRoot(const std::string& root, const std::string& path, const std::string& field) {
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  if (path.empty() || path[0] == '/' || std::find(parts.begin(), parts.end(), "..") != parts.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": \"", path, "\" must be relative to the worker's root, without \"..\""));
  }
  return absl::StrCat(root, "/", path);
}

}  // namespace muster
