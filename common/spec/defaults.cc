// The defaults of a job. Each is also in the table of field rules, as text for people; tests compare the two.
#include <algorithm>

#include "common/plan/ledger.h"
#include "common/spec/resolve.h"

namespace muster {
namespace {

template <typename T>
T Or(T value, T otherwise) {
  return value == T() ? otherwise : value;
}

// 2/3 of 4 x hidden, so that the gate's matrix adds no parameters, rounded up: Touvron et al. 2023, section 2.2, and
// multiple_of in the published code.
int64_t LlamaFfn(int64_t hidden) {
  constexpr int64_t kMultiple = 256;
  return (8 * hidden / 3 + kMultiple - 1) / kMultiple * kMultiple;
}

void FillModel(v1::ModelSpec* model) {
  const bool gpt2 = model->family() == "gpt2";
  model->set_kv_heads(Or(model->kv_heads(), model->heads()));
  model->set_ffn(Or(model->ffn(), gpt2 ? 4 * model->hidden() : LlamaFfn(model->hidden())));
  if (!model->has_tied()) model->set_tied(gpt2);
  if (!model->has_qkv_bias()) model->set_qkv_bias(gpt2);
  model->set_norm_eps(Or(model->norm_eps(), 1e-5));
  model->set_rope_base(Or(model->rope_base(), 10000.0));
}

void FillData(v1::DataSpec* data) {
  for (v1::DatasetSpec& dataset : *data->mutable_train()) dataset.set_weight(Or(dataset.weight(), 1.0));
  for (v1::DatasetSpec& dataset : *data->mutable_validation()) dataset.set_weight(Or(dataset.weight(), 1.0));
  data->set_seed(Or<uint64_t>(data->seed(), 1234));
  data->set_prefetch_steps(Or(data->prefetch_steps(), Layout().prefetch_steps));
  data->set_loader_threads(Or<int64_t>(data->loader_threads(), 1));
  if (!data->has_packing()) data->set_packing(true);
}

void FillTraining(const v1::ModelSpec& model, v1::TrainingSpec* training) {
  training->set_sequence_length(Or(training->sequence_length(), model.context()));
  training->set_precision(Or<std::string>(training->precision(), "bf16"));
  if (training->recompute().empty() || training->recompute() == "auto") training->set_recompute("none");
  if (!training->has_clip_grad_norm()) training->set_clip_grad_norm(1);
  v1::AdamWSpec* adamw = training->mutable_optimizer()->mutable_adamw();
  adamw->set_lr(Or(adamw->lr(), 6e-4));
  adamw->set_beta1(Or(adamw->beta1(), 0.9));
  adamw->set_beta2(Or(adamw->beta2(), 0.95));
  adamw->set_eps(Or(adamw->eps(), 1e-8));
  if (!adamw->has_weight_decay()) adamw->set_weight_decay(0.1);
  v1::LearningRateScheduleSpec* schedule = training->mutable_schedule();
  schedule->set_decay(Or<std::string>(schedule->decay(), "cosine"));
  if (!schedule->has_min_lr_ratio()) schedule->set_min_lr_ratio(0.1);
  if (schedule->decay() == "wsd") {
    schedule->set_decay_steps(Or(schedule->decay_steps(), std::max<int64_t>(1, training->steps() / 10)));
  }
  training->set_threads_per_rank(Or<int64_t>(training->threads_per_rank(), 1));
}

void FillParallelism(v1::ParallelismSpec* parallelism) {
  parallelism->set_tensor(Or<int64_t>(parallelism->tensor(), 1));
  parallelism->set_pipeline(Or<int64_t>(parallelism->pipeline(), 1));
  // Each of schedule and interleave says the other.
  parallelism->set_schedule(
      Or<std::string>(parallelism->schedule(), parallelism->interleave() > 1 ? "interleaved" : "1f1b"));
  parallelism->set_interleave(Or<int64_t>(parallelism->interleave(), parallelism->schedule() == "interleaved" ? 2 : 1));
  if (parallelism->zero_stage() == 1) parallelism->set_optimizer_sharding(true);
  if (!parallelism->has_sequence_parallel()) parallelism->set_sequence_parallel(parallelism->tensor() > 1);
  parallelism->set_context(Or<int64_t>(parallelism->context(), 1));
  parallelism->set_expert(Or<int64_t>(parallelism->expert(), 1));
  parallelism->set_rebalance(Or<std::string>(parallelism->rebalance(), "off"));
}

void FillPolicy(v1::PolicySpec* policy) {
  policy->set_queue(Or<std::string>(policy->queue(), "default"));
  if (!policy->has_max_restarts()) policy->set_max_restarts(5);
  policy->set_loss_spike(Or<std::string>(policy->loss_spike(), "ignore"));
  policy->set_non_finite(Or<std::string>(policy->non_finite(), "fail"));
  policy->set_spike_threshold(Or(policy->spike_threshold(), 6.0));
  if (!policy->has_rewind_steps()) policy->set_rewind_steps(100);
  if (!policy->has_max_rewinds()) policy->set_max_rewinds(3);
}

}  // namespace

void FillDefaults(v1::JobSpec* spec) {
  FillModel(spec->mutable_model());
  FillData(spec->mutable_data());
  FillTraining(spec->model(), spec->mutable_training());
  FillParallelism(spec->mutable_parallelism());
  spec->mutable_resources()->set_device(Or<std::string>(spec->resources().device(), "cpu"));
  spec->mutable_checkpoint()->set_keep(Or<int64_t>(spec->checkpoint().keep(), 3));
  if (!spec->checkpoint().has_asynchronous()) spec->mutable_checkpoint()->set_asynchronous(true);
  FillPolicy(spec->mutable_policy());
}

}  // namespace muster
