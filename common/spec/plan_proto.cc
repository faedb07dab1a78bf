#include "common/spec/plan_proto.h"

#include "common/base/check.h"

namespace muster {
namespace {

ModelShape ToShape(const v1::ModelSpec& model) {
  ModelShape shape;
  shape.family = model.family() == "gpt2" ? ModelFamily::kGpt2 : ModelFamily::kLlama;
  shape.layers = model.layers();
  shape.hidden = model.hidden();
  shape.heads = model.heads();
  shape.kv_heads = model.kv_heads();
  shape.ffn = model.ffn();
  shape.vocab = model.vocab();
  shape.context = model.context();
  shape.tied = model.tied();
  shape.qkv_bias = model.qkv_bias();
  shape.norm_eps = model.norm_eps();
  shape.rope_base = model.rope_base();
  return shape;
}

Precision ToPrecision(const std::string& name) {
  if (name == "fp32") return Precision::kFp32;
  return name == "bf16" ? Precision::kBf16 : Precision::kFp16;
}

Recompute ToRecompute(const std::string& name) {
  if (name == "full") return Recompute::kFull;
  return name == "selective" ? Recompute::kSelective : Recompute::kNone;
}

Layout ToLayout(const v1::JobSpec& spec) {
  Layout layout;
  layout.data = spec.parallelism().data();
  layout.tensor = spec.parallelism().tensor();
  layout.pipeline = spec.parallelism().pipeline();
  layout.interleave = spec.parallelism().interleave();
  layout.micro_batch = spec.training().micro_batch();
  layout.sequence_length = spec.training().sequence_length();
  layout.precision = ToPrecision(spec.training().precision());
  layout.recompute = ToRecompute(spec.training().recompute());
  layout.loss_chunk_tokens = spec.training().loss_chunk_tokens();
  layout.optimizer_sharding = spec.parallelism().optimizer_sharding();
  layout.checkpoint_staging = spec.checkpoint().asynchronous();
  layout.threads_per_rank = spec.training().threads_per_rank();
  layout.document_mask = spec.data().document_mask();
  layout.prefetch_steps = spec.data().prefetch_steps();
  return layout;
}

void ToProto(const Layout& layout, v1::PlanLayout* proto) {
  proto->set_data(layout.data);
  proto->set_tensor(layout.tensor);
  proto->set_pipeline(layout.pipeline);
  proto->set_micro_batch(layout.micro_batch);
  proto->set_accumulation_steps(layout.accumulation_steps);
  proto->set_recompute(RecomputeName(layout.recompute));
  proto->set_optimizer_sharding(layout.optimizer_sharding);
  proto->set_interleave(layout.interleave);
  proto->set_precision(PrecisionName(layout.precision));
  proto->set_sequence_length(layout.sequence_length);
}

void ToProto(const std::array<int64_t, kMemoryCategories>& memory, v1::MemoryByCategory* proto) {
  const auto bytes = [&memory](MemoryCategory category) { return memory[static_cast<size_t>(category)]; };
  proto->set_parameters(bytes(MemoryCategory::kParameters));
  proto->set_gradients(bytes(MemoryCategory::kGradients));
  proto->set_optimizer_state(bytes(MemoryCategory::kOptimizerState));
  proto->set_activations(bytes(MemoryCategory::kActivations));
  proto->set_logits(bytes(MemoryCategory::kLogits));
  proto->set_communication(bytes(MemoryCategory::kCommunication));
  proto->set_workspace(bytes(MemoryCategory::kWorkspace));
  proto->set_staging(bytes(MemoryCategory::kStaging));
}

void ToProto(const RankPlan& rank, const JobPlan& plan, v1::PlanRank* proto) {
  proto->set_rank(rank.rank);
  proto->set_stage(rank.stage);
  proto->set_arena_bytes(rank.arena_bytes);
  proto->set_arena_lower_bound_bytes(rank.arena_lower_bound_bytes);
  proto->set_pinned_bytes(rank.pinned_bytes);
  proto->set_host_bytes(rank.host_bytes);
  proto->set_outside_bytes(rank.outside_bytes);
  proto->set_total_bytes(rank.total_bytes);
  ToProto(rank.memory, proto->mutable_memory());
  proto->set_limit_bytes(plan.memory_per_rank_bytes);
  proto->set_outside_source(plan.outside_source);
}

}  // namespace

JobPlanRequest ToPlanRequest(const v1::JobSpec& spec, std::vector<Problem>* problems) {
  JobPlanRequest request;
  request.job.shape = ToShape(spec.model());
  request.job.layout = ToLayout(spec);
  request.job.ranks = spec.resources().ranks();
  request.job.global_batch = spec.training().global_batch();
  request.memory_per_rank_bytes = spec.resources().memory_per_rank_bytes();
  request.device = spec.resources().device() == "cuda" ? DeviceKind::kCuda : DeviceKind::kCpu;
  const auto& cuts = spec.parallelism().cuts();
  if (!cuts.empty()) {
    request.stages = StagesFromCuts(request.job.shape, request.job.layout, {cuts.begin(), cuts.end()}, problems);
  }
  return request;
}

EngineInputs ToEngineInputs(const v1::JobSpec& resolved) {
  std::vector<Problem> problems;
  const JobPlanRequest request = ToPlanRequest(resolved, &problems);
  EngineInputs inputs;
  inputs.model = request.job.shape;
  inputs.layout = request.job.layout;
  const int64_t replica_rows = inputs.layout.data * inputs.layout.micro_batch;
  MUSTER_CHECK(problems.empty() && replica_rows > 0, "the spec is not resolved");
  inputs.layout.accumulation_steps = request.job.global_batch / replica_rows;
  inputs.stages = request.stages;
  if (inputs.stages.empty()) inputs.stages = {{0, inputs.model.units()}};  // one stage has no cuts
  MUSTER_CHECK(static_cast<int64_t>(inputs.stages.size()) == inputs.layout.virtual_stages(),
               "the spec is not resolved");
  return inputs;
}

v1::Plan ToProto(const JobPlan& plan) {
  v1::Plan proto;
  proto.set_feasible(plan.feasible);
  for (const Problem& problem : plan.problems) {
    v1::PlanProblem* entry = proto.add_problems();
    entry->set_code(problem.code);
    entry->set_field(problem.field);
    entry->set_message(problem.message);
    entry->set_suggestion(problem.suggestion);
  }
  ToProto(plan.layout, proto.mutable_layout());
  proto.set_parameters(plan.parameters);
  proto.set_model_flops_per_token(plan.model_flops_per_token);
  proto.set_flops_convention("6N+12LhT");
  for (const StagePlan& stage : plan.stages) {
    v1::PlanStage* entry = proto.add_stages();
    for (const std::string& unit : stage.unit_names) entry->add_units(unit);
    entry->set_parameters(stage.parameters);
    entry->set_first_unit(stage.units.first);
    entry->set_last_unit(stage.units.last);
    proto.mutable_pipeline()->add_in_flight(stage.in_flight);
  }
  for (const RankPlan& rank : plan.ranks) ToProto(rank, plan, proto.add_ranks());
  proto.mutable_pipeline()->set_bubble_of_ideal(plan.bubble_of_ideal);
  proto.mutable_pipeline()->set_bubble_of_total(plan.bubble_of_total);
  return proto;
}

}  // namespace muster
