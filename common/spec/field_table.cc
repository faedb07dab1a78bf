// The table of FieldRules(): the one place where ranges, defaults and meanings of a job's fields are written down.
#include "common/plan/layout_check.h"
#include "common/spec/field_rules.h"

namespace muster {
namespace {

constexpr NumberRange Counts(int64_t most) { return {1, static_cast<double>(most), false, false}; }
constexpr NumberRange kSteps = {0, 1e12, false, false};
constexpr NumberRange kPositive = {0, 1e12, true, false};
constexpr NumberRange kFraction = {0, 1, true, true};

FieldRule Section(const char* path, const char* default_text, const char* meaning) {
  FieldRule rule;
  rule.path = path;
  rule.default_text = default_text;
  rule.meaning = meaning;
  return rule;
}

FieldRule Number(const char* path, const char* unit, const char* default_text, NumberRange range, const char* meaning) {
  FieldRule rule = Section(path, default_text, meaning);
  rule.unit = unit;
  rule.range = range;
  return rule;
}

FieldRule NumberOrAuto(const char* path, const char* unit, NumberRange range, const char* meaning) {
  FieldRule rule = Number(path, unit, "auto", range, meaning);
  rule.may_be_auto = true;
  return rule;
}

FieldRule Flag(const char* path, const char* default_text, const char* meaning) {
  FieldRule rule = Section(path, default_text, meaning);
  rule.unit = "true or false";
  return rule;
}

FieldRule Text(const char* path, const char* default_text, TextKind kind, const char* meaning) {
  FieldRule rule = Section(path, default_text, meaning);
  rule.unit = kind == TextKind::kPath ? "path" : "text";
  rule.text = kind;
  return rule;
}

FieldRule Choice(const char* path, const char* default_text, std::vector<absl::string_view> choices,
                 std::vector<absl::string_view> later, const char* meaning) {
  FieldRule rule = Section(path, default_text, meaning);
  rule.choices = std::move(choices);
  rule.later = std::move(later);
  return rule;
}

using Rules = std::vector<FieldRule>;

Rules Model() {
  return {
      Section("model", "required", "what is trained"),
      Choice("model.family", "required", {"gpt2", "llama"}, {},
             "the architecture; llama also serves Mistral and, with qkv_bias, Qwen2"),
      Number("model.layers", "layers", "required", Counts(kLargestLayers), "transformer layers"),
      Number("model.hidden", "width", "required", Counts(kLargestWidth), "of the residual stream"),
      Number("model.heads", "heads", "required", Counts(kLargestWidth), "query heads; divides hidden"),
      Number("model.kv_heads", "heads", "heads", Counts(kLargestWidth), "key and value heads; divides heads"),
      Number("model.ffn", "width", "gpt2: 4 x hidden", Counts(kLargestFfn),
             "inner width of the feed-forward block; llama: 8/3 hidden, rounded up to a multiple of 256"),
      Number("model.vocab", "tokens", "required", Counts(kLargestVocab), "at least the data's largest token plus one"),
      Number("model.context", "tokens", "required", Counts(kLargestContext), "longest sequence"),
      Flag("model.tied", "gpt2: true", "the head shares the token embedding's weight"),
      Flag("model.qkv_bias", "gpt2: true", "biases on query, key and value; gpt2 always has them"),
      Number("model.norm_eps", "", "1e-5", kFraction, "added to the variance in norms"),
      Number("model.rope_base", "", "10000", kPositive, "base of llama's rotary wavelengths"),
      Text("model.init_from", "none", TextKind::kPath,
           "directory of a Hugging Face model to start from, under the worker's data root; what is left out above is "
           "taken "
           "from its config.json, which `muster` looks for below --data-root"),
      Text("model.frozen", "none", TextKind::kFree, "patterns of parameters not trained; not in this version"),
  };
}

Rules Dataset(const char* list, const char* path, const char* weight, const char* default_text, const char* meaning) {
  return {
      Section(list, default_text, meaning),
      Text(path, "required", TextKind::kPath,
           "prefix of the .bin and .idx files, or a .bin file of llm.c, under the worker's data root"),
      Number(weight, "share", "1", kPositive, "share of samples, relative to the others"),
  };
}

Rules Data() {
  return {
      Number("data.seed", "", "1234", {1, 1.8446744073709551615e19, false, false},
             "keys the order of samples and the initial weights"),
      Number("data.prefetch_steps", "steps", "2", Counts(1000), "of batches in memory, the one in use included"),
      Number("data.loader_threads", "threads", "1", Counts(256), "of the loader; results do not depend on it"),
      Flag("data.document_mask", "false", "neither attention nor what is predicted crosses documents"),
      Flag("data.packing", "true", "documents fill whole sequences; false: one document a sample, padded or cut off"),
  };
}

Rules Training() {
  return {
      Section("training", "required", "how it is trained"),
      Number("training.global_batch", "sequences", "required", Counts(kLargestBatch),
             "of one optimizer step over all replicas; never changed by Muster"),
      NumberOrAuto("training.micro_batch", "sequences", Counts(kLargestBatch), "of one micro-batch of one replica"),
      Number("training.sequence_length", "tokens", "model.context", Counts(kLargestContext), "of one sample"),
      Number("training.steps", "steps", "required", {1, 1e12, false, false}, "optimizer steps"),
      Choice("training.precision", "bf16", {"fp32", "bf16", "fp16", "fp8"}, {"fp8"},
             "of weights and activations; sums, moments and master weights are fp32"),
      Choice("training.recompute", "none", {"none", "selective", "full", "auto"}, {},
             "activations computed again in the backward pass: selective, what is cheap (norms, attention, activation "
             "function); full, all but the inputs of half layers; this version: auto is none"),
      Number("training.clip_grad_norm", "norm", "1", {0, 1e12, false, false},
             "gradients are scaled down to it; 0: no clipping"),
      Section("training.optimizer", "adamw", "the update rule"),
      Section("training.optimizer.adamw", "with its defaults", "Adam with decoupled weight decay"),
      Number("training.optimizer.adamw.lr", "rate", "6e-4", {0, 1e3, true, false}, "at the peak"),
      Number("training.optimizer.adamw.beta1", "", "0.9", kFraction, "decay of the average of gradients"),
      Number("training.optimizer.adamw.beta2", "", "0.95", kFraction, "decay of the average of squares"),
      Number("training.optimizer.adamw.eps", "", "1e-8", kFraction, "added to the root of the second moment"),
      Number("training.optimizer.adamw.weight_decay", "rate", "0.1", {0, 1e3, false, false},
             "on tensors of two dimensions only"),
      Section("training.schedule", "cosine", "the learning rate over the steps"),
      Number("training.schedule.warmup_steps", "steps", "0", kSteps, "linear rise to the peak"),
      Choice("training.schedule.decay", "cosine", {"cosine", "linear", "constant", "wsd"}, {},
             "behind the warm-up; wsd: stable, then decay"),
      Number("training.schedule.min_lr_ratio", "", "0.1", {0, 1, false, false}, "the last rate over the peak"),
      Number("training.schedule.decay_steps", "steps", "a tenth of all", kSteps,
             "the last ones, over which wsd decays"),
      Number("training.validate_every_steps", "steps", "0", kSteps,
             "between validations; 0: only before the first step and after the last"),
      Number("training.validation_windows", "sequences", "0", kSteps, "used each time; 0: all"),
      Number("training.threads_per_rank", "threads", "1", Counts(1024),
             "of one rank's matrix products; results depend on it"),
      Number("training.loss_chunk_tokens", "tokens", "0", kSteps,
             "whose logits exist at a time, computed again in the backward pass; 0: a whole micro-batch's"),
  };
}

Rules Parallelism() {
  return {
      Section("parallelism", "data auto, tensor 1, pipeline 1", "how ranks share the work"),
      NumberOrAuto("parallelism.data", "replicas", Counts(kLargestRanks), "ranks / (tensor x pipeline) when auto"),
      Number("parallelism.tensor", "ranks", "1", Counts(kLargestRanks),
             "that share each layer: its heads, its feed-forward width and the vocabulary"),
      Number("parallelism.pipeline", "stages", "1", Counts(kLargestPipeline), "that the layers are cut into"),
      Choice("parallelism.schedule", "1f1b", {"1f1b", "interleaved"}, {},
             "of the micro-batches; interleaved has a smaller bubble, more transfers, and the same results to the bit"),
      Number("parallelism.interleave", "chunks", "1", Counts(kLargestInterleave),
             "of the model on each rank, 2 or more with the interleaved schedule: the bubble is divided by them, and "
             "micro-batches come in groups of `pipeline`"),
      Flag("parallelism.optimizer_sharding", "false",
           "each replica keeps the optimizer state of its share of the rows only (ZeRO-1): the same results in less "
           "memory"),
      Flag("parallelism.sequence_parallel", "with tensor > 1",
           "tensor ranks share the rows between the layers too; always so with tensor > 1"),
      Number(
          "parallelism.cuts", "units", "even in FLOPs", Counts(2 * kLargestLayers + 1),
          "first unit of each stage after the first (of each chunk, in model order, when interleaved); units are the "
          "embedding, attention and feed-forward of each layer, and the head"),
      Number("parallelism.context", "ranks", "1", Counts(kLargestRanks), "that share a sequence; this version: 1"),
      Number("parallelism.expert", "ranks", "1", Counts(kLargestRanks), "that share the experts; this version: 1"),
      Number("parallelism.zero_stage", "", "0", {0, 3, false, false},
             "1 is the same as optimizer_sharding; 2 and 3 are not in this version"),
      Choice("parallelism.rebalance", "off", {"off", "auto"}, {"auto"}, "a better cut is applied at a checkpoint"),
  };
}

Rules Resources() {
  return {
      Section("resources", "required", "what it runs on"),
      Number("resources.ranks", "processes", "required", Counts(kLargestRanks), "one a device or slot"),
      Choice("resources.device", "cpu", {"cpu", "cuda"}, {}, "where ranks compute"),
      Number("resources.memory_per_rank", "bytes", "what the worker's slot has", {1, 1e15, false, false},
             "that one rank may use; a plan over it is refused"),
  };
}

Rules CheckpointAndPolicy() {
  return {
      Section("checkpoint", "with its defaults", "what is kept on disk"),
      Text("checkpoint.directory", "the job's id", TextKind::kPath,
           "under the worker's checkpoint root; each job has a folder of its own in it, named by its id"),
      Number("checkpoint.every_steps", "steps", "0", kSteps, "between checkpoints; 0: only at the end and at a stop"),
      Number("checkpoint.keep", "checkpoints", "3", Counts(1'000'000),
             "how many stay; the newest good one always does"),
      Flag("checkpoint.asynchronous", "true",
           "written beside training, from a copy in host memory (12 bytes for each parameter that a rank saves)"),
      Section("policy", "with its defaults", "what happens when"),
      Text("policy.queue", "default", TextKind::kName, "where it waits; this version has the queue default"),
      Number("policy.priority", "", "0", {-1e6, 1e6, false, false}, "higher goes first"),
      Flag("policy.preemptible", "false", "may be stopped at a checkpoint for a job of higher priority"),
      Number("policy.max_restarts", "recoveries", "5", {0, 1e6, false, false}, "before the job fails"),
      Choice(
          "policy.loss_spike", "ignore", {"ignore", "skip", "rewind"}, {},
          "a loss far above the ones before: train on it, pass its samples over, or go back and then pass them over"),
      Choice("policy.non_finite", "fail", {"fail", "skip", "rewind"}, {}, "a loss or gradient that is not a number"),
      Number("policy.spike_threshold", "deviations", "6", {0, 1e6, true, false},
             "above the median of the newest 64 losses, and at least a tenth of it: a spike"),
      Number("policy.rewind_steps", "steps", "100", kSteps, "that a rewind goes back, to the newest checkpoint there"),
      Number("policy.max_rewinds", "rewinds", "3", {0, 1e6, false, false}, "before the job fails"),
      Number("policy.start_deadline", "duration", "none", {1, 1e9, false, false},
             "a job that has not started by then fails; not in this version"),
  };
}

Rules AllRules() {
  Rules all = {
      Text("name", "required", TextKind::kName,
           "for people; a command that takes a name means the newest job of it that has not ended, else the newest"),
      Text("labels", "none", TextKind::kFree, "key-value pairs to select jobs by"),
  };
  const Rules sections[] = {
      Model(),
      {Section("data", "required", "what it is trained on")},
      Dataset("data.train", "data.train.path", "data.train.weight", "required", "datasets, blended by weight"),
      Dataset("data.validation", "data.validation.path", "data.validation.weight", "none",
              "datasets scored before, during and after training"),
      Data(),
      Training(),
      Parallelism(),
      Resources(),
      CheckpointAndPolicy()};
  for (const Rules& section : sections) all.insert(all.end(), section.begin(), section.end());
  return all;
}

}  // namespace

const std::vector<FieldRule>& FieldRules() {
  static const std::vector<FieldRule>* rules = new std::vector<FieldRule>(AllRules());
  return *rules;
}

}  // namespace muster
