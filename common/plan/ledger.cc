#include "common/plan/ledger.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/plan/device_constants.h"

namespace muster {
namespace {

constexpr int64_t kFloatBytes = 4;
constexpr int64_t kTokenBytes = 4;

int64_t ComputeBytes(Precision precision) { return precision == Precision::kFp32 ? 4 : 2; }

int64_t RoundUp(int64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

// One stage's ledger in the making. Ticks of n units: forward 0 .. n-1, backward n .. 2n-1, reduction 2n, optimizer
// 2n+1.
class Builder {
 public:
  Builder(const ModelShape& shape, const Layout& layout, UnitRange units, int64_t rank)
      : shape_(shape),
        layout_(layout),
        units_(units),
        stage_(CoordinateOf(layout, rank).pipeline),
        slots_(InFlightMicroBatches(layout, stage_)),
        unit_count_(units.last - units.first),
        rows_(layout.micro_batch * layout.sequence_length),
        element_(ComputeBytes(layout.precision)) {
    ledger_.ticks = 2 * unit_count_ + 2;
  }

  Ledger Build() && {
    AddModelState();
    AddWorkspace();
    AddStaging();
    const std::vector<Unit> units = Units(shape_);
    for (int64_t i = units_.first; i < units_.last; ++i) AddUnit(units[static_cast<size_t>(i)]);
    AddPipelineBuffers();
    AddReduction();
    return std::move(ledger_);
  }

 private:
  bool has_embedding() const { return units_.first == 0; }
  bool has_head() const { return units_.last == shape_.units(); }

  bool has_attention() const {
    const std::vector<Unit> units = Units(shape_);
    return std::any_of(units.begin() + units_.first, units.begin() + units_.last,
                       [](const Unit& unit) { return unit.kind == UnitKind::kAttention; });
  }

  Lifetime WholeStep() const { return {0, ledger_.ticks - 1}; }
  Lifetime Passes() const { return {0, 2 * unit_count_ - 1}; }
  Lifetime Reduction() const { return {2 * unit_count_, 2 * unit_count_}; }
  int64_t ForwardTick(const Unit& unit) const { return unit.index - units_.first; }
  int64_t BackwardTick(const Unit& unit) const { return 2 * unit_count_ - 1 - ForwardTick(unit); }

  void Add(std::string name, MemoryCategory category, int64_t bytes, int64_t slots, Lifetime lifetime) {
    if (bytes == 0 || slots == 0) return;
    ledger_.entries.push_back({std::move(name), category, MemorySpace::kDevice, RoundUp(bytes), slots, lifetime});
  }

  void AddModelState() {
    const std::vector<ParameterInfo> parameters = StageParameters(shape_, units_);
    for (const ParameterInfo& parameter : parameters) {
      Add(absl::StrCat("parameter/", parameter.name), MemoryCategory::kParameters, parameter.elements() * element_, 1,
          WholeStep());
    }
    for (const ParameterInfo& parameter : parameters) {
      if (parameter.unit < units_.first) continue;  // the head of a later stage has an accumulator of its own
      Add(absl::StrCat("gradient/", parameter.name), MemoryCategory::kGradients, parameter.elements() * kFloatBytes, 1,
          WholeStep());
    }
    if (shape_.tied && has_head()) {
      Add(kTiedHeadGradient, MemoryCategory::kGradients, shape_.vocab * shape_.hidden * kFloatBytes, 1, WholeStep());
    }
    std::vector<std::string> states = {"first", "second"};
    if (layout_.precision != Precision::kFp32) states.insert(states.begin(), "master");
    for (const std::string& state : states) {
      for (const ParameterInfo& parameter : parameters) {
        Add(absl::StrCat("optimizer/", state, "/", parameter.name), MemoryCategory::kOptimizerState,
            parameter.elements() * kFloatBytes, 1, WholeStep());
      }
    }
  }

  void AddWorkspace() {
    Add("workspace/kernels", MemoryCategory::kWorkspace, KernelWorkspaceBytes(layout_.threads_per_rank), 1,
        WholeStep());
    if (!has_attention()) return;
    Add("workspace/attention", MemoryCategory::kWorkspace,
        AttentionWorkspaceBytes(layout_.sequence_length, shape_.heads / shape_.kv_heads, shape_.head_dim(),
                                layout_.threads_per_rank),
        1, WholeStep());
  }

  // Tokens and targets, i32 each, of the stages that read them. Validation reads one micro-batch at a time.
  void AddStaging() {
    if (!has_embedding() && !has_head()) return;
    const int64_t micro_batch_bytes = 2 * rows_ * kTokenBytes;
    Add("staging/batches", MemoryCategory::kStaging, micro_batch_bytes * layout_.accumulation_steps * kPrefetchedSteps,
        1, WholeStep());
    Add("staging/validation", MemoryCategory::kStaging, micro_batch_bytes, 1, WholeStep());
  }

  // Kept from a micro-batch's forward to its backward. With one micro-batch in flight, passes of units alternate
  // strictly and the entry is free outside its unit's two; with more, other micro-batches' slots are live through both
  // passes.
  void AddSaved(const Unit& unit, const char* what, int64_t bytes,
                MemoryCategory category = MemoryCategory::kActivations) {
    AddSavedFrom(ForwardTick(unit), unit, what, bytes, category);
  }

  void AddSavedFrom(int64_t first_tick, const Unit& unit, const char* what, int64_t bytes, MemoryCategory category) {
    const Lifetime lifetime = slots_ == 1 ? Lifetime{first_tick, BackwardTick(unit)} : Passes();
    Add(absl::StrCat("saved/", unit.name(), "/", what), category, bytes, slots_, lifetime);
  }

  void AddTransient(const Unit& unit, const char* what, int64_t bytes) {
    Add(absl::StrCat("transient/", unit.name(), "/", what), MemoryCategory::kActivations, bytes, 1,
        {BackwardTick(unit), BackwardTick(unit)});
  }

  // What every unit but the embedding has: its input (T, h), the output of the unit before, and that input's norm.
  void AddInputAndNorm(const Unit& unit) {
    const int64_t written = std::max<int64_t>(ForwardTick(unit) - 1, 0);  // by the unit before
    AddSavedFrom(written, unit, "input", rows_ * shape_.hidden * element_, MemoryCategory::kActivations);
    AddSaved(unit, "mean", rows_ * kFloatBytes);
    AddSaved(unit, "rstd", rows_ * kFloatBytes);
    AddSaved(unit, "norm_out", rows_ * shape_.hidden * element_);
    AddTransient(unit, "d_hidden", rows_ * shape_.hidden * element_);
  }

  // Column sums of gradients (columns) pass through partial sums (kColumnPartitions, columns) f32.
  void AddPartials(const Unit& unit, int64_t columns) {
    AddTransient(unit, "partials", kColumnPartitions * columns * kFloatBytes);
  }

  void AddUnit(const Unit& unit) {
    const int64_t qkv = (shape_.heads + 2 * shape_.kv_heads) * shape_.head_dim();
    switch (unit.kind) {
      case UnitKind::kEmbedding:
        return;  // reads tokens from staging
      case UnitKind::kAttention:
        AddInputAndNorm(unit);
        AddSaved(unit, "qkv", rows_ * qkv * element_);
        AddSaved(unit, "attention_out", rows_ * shape_.hidden * element_);
        AddSaved(unit, "lse", rows_ * shape_.heads * kFloatBytes);
        AddTransient(unit, "d_qkv", rows_ * qkv * element_);
        AddPartials(unit, std::max(2 * shape_.hidden, qkv));
        return;
      case UnitKind::kFeedForward:
        AddInputAndNorm(unit);
        AddSaved(unit, "up", rows_ * shape_.ffn * element_);
        AddSaved(unit, "gelu", rows_ * shape_.ffn * element_);
        AddTransient(unit, "d_up", rows_ * shape_.ffn * element_);
        AddPartials(unit, std::max(2 * shape_.hidden, shape_.ffn));
        return;
      case UnitKind::kHead:
        AddInputAndNorm(unit);
        AddSaved(unit, "logits", rows_ * shape_.vocab * element_, MemoryCategory::kLogits);
        AddSaved(unit, "losses", rows_ * kFloatBytes, MemoryCategory::kLogits);
        AddSaved(unit, "lse", rows_ * kFloatBytes, MemoryCategory::kLogits);
        AddPartials(unit, 2 * shape_.hidden);
        return;
    }
  }

  // The input from the stage before is received into the first unit's saved input. The output waits for its send in as
  // many slots as micro-batches are in flight. The gradient of the residual stream is updated in place through the
  // units: two slots where it comes from or goes to another stage, one being sent or received while the other is worked
  // on.
  void AddPipelineBuffers() {
    const int64_t stream_bytes = rows_ * shape_.hidden * element_;
    if (!has_head()) Add("communication/output", MemoryCategory::kCommunication, stream_bytes, slots_, Passes());
    if (has_embedding() && has_head()) {
      Add("stream/gradient", MemoryCategory::kActivations, stream_bytes, 1, {unit_count_, 2 * unit_count_ - 1});
    } else {
      Add("stream/gradient", MemoryCategory::kCommunication, stream_bytes, 2, Passes());
    }
  }

  void AddReduction() {
    if (layout_.data > 1) {
      int64_t gradient_bytes = 0;
      for (const LedgerEntry& entry : ledger_.entries) {
        if (entry.category == MemoryCategory::kGradients) gradient_bytes += entry.bytes();
      }
      Add("communication/reduction", MemoryCategory::kCommunication,
          GradientReducerScratchBytes(gradient_bytes / kFloatBytes, layout_.data), 1, Reduction());
    }
    // A tied weight on two stages: the other's accumulator, once both are reduced.
    if (shape_.tied && has_embedding() != has_head()) {
      Add(kTiedPeerGradient, MemoryCategory::kCommunication, shape_.vocab * shape_.hidden * kFloatBytes, 1,
          Reduction());
    }
  }

  const ModelShape& shape_;
  const Layout& layout_;
  const UnitRange units_;
  const int64_t stage_;
  const int64_t slots_;  // micro-batches in flight
  const int64_t unit_count_;
  const int64_t rows_;     // T, of one micro-batch
  const int64_t element_;  // bytes of the compute type
  Ledger ledger_;
};

}  // namespace

const char* MemoryCategoryName(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::kParameters:
      return "parameters";
    case MemoryCategory::kGradients:
      return "gradients";
    case MemoryCategory::kOptimizerState:
      return "optimizer_state";
    case MemoryCategory::kActivations:
      return "activations";
    case MemoryCategory::kLogits:
      return "logits";
    case MemoryCategory::kCommunication:
      return "communication";
    case MemoryCategory::kWorkspace:
      return "workspace";
    case MemoryCategory::kStaging:
      return "staging";
  }
  return "unknown";
}

int64_t Ledger::bytes(MemoryCategory category) const {
  int64_t total = 0;
  for (const LedgerEntry& entry : entries) {
    if (entry.category == category) total += entry.bytes();
  }
  return total;
}

std::vector<ParameterInfo> StageParameters(const ModelShape& shape, UnitRange units) {
  std::vector<ParameterInfo> result;
  for (ParameterInfo& parameter : Parameters(shape)) {
    const bool own = parameter.unit >= units.first && parameter.unit < units.last;
    const bool tied = shape.tied && units.last == shape.units() && parameter.name == kTiedParameter;
    if (own || tied) result.push_back(std::move(parameter));
  }
  return result;
}

Ledger BuildLedger(const ModelShape& shape, const Layout& layout, UnitRange units, int64_t rank) {
  MUSTER_CHECK(0 <= units.first && units.first < units.last && units.last <= shape.units(), "units ", units.first,
               " to ", units.last, " of ", shape.units());
  MUSTER_CHECK(0 <= rank && rank < layout.ranks(), "rank ", rank, " of ", layout.ranks());
  return Builder(shape, layout, units, rank).Build();
}

}  // namespace muster
