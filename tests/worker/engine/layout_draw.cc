#include "tests/worker/engine/layout_draw.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/plan/layout_check.h"

namespace muster {
namespace {

constexpr int kMostDraws = 10'000;

// With a Weyl sequence this is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
uint64_t Mix(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

// Of parallelism.
int KindsOf(const Layout& layout) { return (layout.data > 1) + (layout.tensor > 1) + (layout.pipeline > 1); }

ModelShape DrawModel(Draw& draw) {
  ModelShape model;
  model.family = draw.OneIn(2) ? ModelFamily::kGpt2 : ModelFamily::kLlama;
  const bool llama = model.family == ModelFamily::kLlama;
  model.layers = 1 + draw.Below(4);
  model.heads = draw.Of<int64_t>({4, 4, 6});
  model.hidden = 8 * model.heads;
  model.kv_heads = llama ? draw.Of(Divisors(model.heads)) : model.heads;
  model.ffn = draw.Of<int64_t>({2, 4}) * model.hidden;
  model.vocab = draw.Of<int64_t>({61, 64, 67});
  model.context = 16;
  model.tied = draw.OneIn(2);
  model.qkv_bias = !llama || draw.OneIn(2);
  return model;
}

// Sizes of the three kinds of parallelism: every product of at most kMostDrawnRanks ranks, those of more kinds more
// often than there are of them.
void DrawSizes(Draw& draw, Layout* layout) {
  constexpr int kTimes[] = {1, 1, 2, 12};  // by kinds above 1
  std::vector<Layout> all;
  for (int64_t data = 1; data <= kMostDrawnRanks; ++data) {
    for (int64_t tensor = 1; data * tensor <= kMostDrawnRanks; ++tensor) {
      for (int64_t pipeline = 1; data * tensor * pipeline <= kMostDrawnRanks; ++pipeline) {
        Layout sizes;
        sizes.data = data;
        sizes.tensor = tensor;
        sizes.pipeline = pipeline;
        all.insert(all.end(), kTimes[KindsOf(sizes)], sizes);
      }
    }
  }
  const Layout sizes = draw.Of(all);
  layout->data = sizes.data;
  layout->tensor = sizes.tensor;
  layout->pipeline = sizes.pipeline;
  layout->interleave = sizes.pipeline > 1 ? 1 + draw.Below(3) : 1;
}

// Runs of units with cuts anywhere; none where there are more runs than units, which the checks refuse.
std::vector<UnitRange> DrawStages(Draw& draw, const ModelShape& model, int64_t stages) {
  if (stages > model.units()) return {};
  std::vector<int64_t> cuts;
  for (int64_t cut = 1; cut < model.units(); ++cut) cuts.push_back(cut);
  while (static_cast<int64_t>(cuts.size()) > stages - 1) {
    cuts.erase(cuts.begin() + draw.Below(static_cast<int64_t>(cuts.size())));
  }
  cuts.push_back(model.units());
  std::vector<UnitRange> result;
  int64_t first = 0;
  for (const int64_t cut : cuts) {
    result.push_back({first, cut});
    first = cut;
  }
  return result;
}

std::vector<std::pair<std::string, int64_t>>& Refused() {
  static auto* const refused = new std::vector<std::pair<std::string, int64_t>>;
  return *refused;
}

void CountRefused(const std::string& field) {
  for (auto& [name, count] : Refused()) {
    if (name == field) {
      ++count;
      return;
    }
  }
  Refused().emplace_back(field, 1);
}

// Whether a job file may ask for this; fills the micro-batches that follow from the batch.
bool Passes(int64_t global_batch, EngineConfig* job) {
  Layout& layout = job->layout;
  const std::vector<Problem> problems =
      CheckLayout({.shape = job->model, .layout = layout, .ranks = layout.ranks(), .global_batch = global_batch});
  if (!problems.empty()) {
    CountRefused(problems.front().field);
    return false;
  }
  layout.accumulation_steps = global_batch / (layout.data * layout.micro_batch);
  const absl::Status status = CheckEngineConfig(*job);
  MUSTER_CHECK(status.ok(), "the planner would admit ", Describe(*job), ": ", status.ToString());
  return true;
}

// A layout for the model and training of `job`; false when the checks refuse it.
bool TryLayout(Draw& draw, int64_t global_batch, EngineConfig* job) {
  Layout& layout = job->layout;
  DrawSizes(draw, &layout);
  layout.micro_batch = 1 + draw.Below(3);
  layout.recompute = draw.Of<Recompute>({Recompute::kNone, Recompute::kSelective, Recompute::kFull});
  layout.loss_chunk_tokens = draw.Of<int64_t>({0, 0, 5, 8});
  layout.optimizer_sharding = draw.OneIn(2);
  layout.checkpoint_staging = draw.OneIn(2);
  job->stages = DrawStages(draw, job->model, layout.virtual_stages());
  return Passes(global_batch, job);
}

bool TryJob(Draw& draw, EngineConfig* job) {
  job->model = DrawModel(draw);
  job->layout.sequence_length = draw.Of<int64_t>({6, 8, 16});
  job->layout.document_mask = draw.OneIn(4);
  job->training.steps = 3;
  // AdamW makes a step of a gradient's sign where the gradient is far above epsilon, and of its rounding where that is:
  // a key's bias has a gradient of zero but for it. With this epsilon differences of 1e-9 stay far below the tolerance.
  job->training.adamw = {.learning_rate = 3e-3, .epsilon = 1e-5};
  job->training.schedule = {.warmup_steps = 2};
  job->training.clip_grad_norm = draw.Of<double>({0, 0.5});
  job->training.seed = static_cast<uint64_t>(draw.Below(1000));
  if (draw.OneIn(3)) job->layout.precision = draw.Of<Precision>({Precision::kBf16, Precision::kFp16});
  if (!TryLayout(draw, draw.Of<int64_t>({8, 12, 24}), job)) return false;
  // Only a pipeline's cut is to keep the bits of a narrow type.
  if (job->layout.pipeline == 1) job->layout.precision = Precision::kFp32;
  return true;
}

const char* PrecisionOf(const Layout& layout) {
  return layout.precision == Precision::kFp32 ? "fp32" : layout.precision == Precision::kBf16 ? "bf16" : "fp16";
}

const char* RecomputeOf(const Layout& layout) {
  return layout.recompute == Recompute::kNone ? "none" : layout.recompute == Recompute::kFull ? "full" : "selective";
}

}  // namespace

Draw::Draw(uint64_t seed, uint64_t index) : state_(Mix(Mix(seed) + index)) {}

int64_t Draw::Below(int64_t bound) {
  state_ += 0x9e3779b97f4a7c15;
  return static_cast<int64_t>(Mix(state_) % static_cast<uint64_t>(bound));
}

EngineConfig DrawJob(Draw& draw) {
  for (int tries = 0; tries < kMostDraws; ++tries) {
    EngineConfig job;
    if (TryJob(draw, &job)) return job;
  }
  MUSTER_CHECK(false, "no job in ", kMostDraws, " draws");
  return {};
}

EngineConfig DrawOtherLayout(Draw& draw, const EngineConfig& job) {
  for (int tries = 0; tries < kMostDraws; ++tries) {
    EngineConfig other = job;
    if (TryLayout(draw, job.layout.global_batch(), &other)) return other;
  }
  MUSTER_CHECK(false, "no other layout in ", kMostDraws, " draws");
  return {};
}

EngineConfig OnOneRank(EngineConfig job) {
  Layout& layout = job.layout;
  layout.accumulation_steps *= layout.data;
  layout.data = layout.tensor = 1;
  layout.recompute = Recompute::kNone;
  layout.loss_chunk_tokens = 0;
  layout.optimizer_sharding = false;
  return WithoutPipeline(job);
}

EngineConfig WithoutPipeline(EngineConfig job) {
  job.layout.pipeline = job.layout.interleave = 1;
  job.stages = {{0, job.model.units()}};
  return job;
}

std::string Describe(const EngineConfig& job) {
  const ModelShape& model = job.model;
  const Layout& layout = job.layout;
  std::vector<int64_t> cuts;
  for (const UnitRange& stage : job.stages) cuts.push_back(stage.first);
  return absl::StrCat(model.family == ModelFamily::kGpt2 ? "gpt2" : "llama", " of ", model.layers, " layers, ",
                      model.heads, " heads, ", model.kv_heads, " kv_heads, ffn ", model.ffn, ", vocab ", model.vocab,
                      model.tied ? ", tied" : ", untied", model.qkv_bias ? ", qkv_bias" : "", "; data ", layout.data,
                      " x tensor ", layout.tensor, " x pipeline ", layout.pipeline, " x ", layout.interleave,
                      " chunks from units ", absl::StrJoin(cuts, " "), "; micro-batch ", layout.micro_batch, " x ",
                      layout.accumulation_steps, ", sequence ", layout.sequence_length, ", ", PrecisionOf(layout),
                      ", recompute ", RecomputeOf(layout), ", loss chunk ", layout.loss_chunk_tokens,
                      layout.optimizer_sharding ? ", sharded" : "", layout.document_mask ? ", document mask" : "",
                      ", clip ", job.training.clip_grad_norm, ", seed ", job.training.seed);
}

std::vector<std::pair<std::string, bool>> FeaturesOf(const EngineConfig& job) {
  const ModelShape& model = job.model;
  const Layout& layout = job.layout;
  const bool in_a_layer = std::any_of(job.stages.begin(), job.stages.end(),
                                      [](const UnitRange& stage) { return stage.first > 0 && stage.first % 2 == 0; });
  return {{"data", layout.data > 1},
          {"tensor", layout.tensor > 1},
          {"tensor > kv_heads", layout.tensor > model.kv_heads},
          {"padded vocabulary", model.vocab % layout.tensor != 0},
          {"pipeline", layout.pipeline > 1},
          {"cut within a layer", in_a_layer},
          {"interleave 2", layout.interleave == 2},
          {"interleave 3", layout.interleave == 3},
          {"two kinds of parallelism", KindsOf(layout) == 2},
          {"three kinds of parallelism", KindsOf(layout) == 3},
          {"accumulation", layout.accumulation_steps > 1},
          {"sharded optimizer", layout.optimizer_sharding && layout.data > 1},
          {"checkpoints beside training", layout.checkpoint_staging},
          {"selective recompute", layout.recompute == Recompute::kSelective},
          {"full recompute", layout.recompute == Recompute::kFull},
          {"loss in chunks", layout.loss_chunk_tokens > 0},
          {"gpt2", model.family == ModelFamily::kGpt2},
          {"llama", model.family == ModelFamily::kLlama},
          {"grouped queries", model.kv_heads < model.heads},
          {"tied over two stages", model.tied && layout.pipeline > 1},
          {"untied", !model.tied},
          {"document mask", layout.document_mask},
          {"bf16", layout.precision == Precision::kBf16}};
}

std::vector<std::pair<std::string, int64_t>> RefusedDraws() { return Refused(); }

}  // namespace muster
