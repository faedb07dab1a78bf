// Activations of a rank's units, and the workspaces of their kernels.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/plan/device_constants.h"
#include "common/plan/ledger_builder.h"

namespace muster {
namespace {

constexpr int64_t kFloatBytes = 4;

// The entries of one unit.
class UnitEntries {
 public:
  UnitEntries(LedgerBuilder& builder, const LedgerBuilder::Chunk& chunk, const Unit& unit)
      : builder_(builder),
        chunk_(chunk),
        unit_(unit),
        shape_(builder.shape()),
        rows_(builder.rows()),
        element_(builder.compute_bytes()) {}

  void Add() {
    const int64_t qkv = (shape_.heads + 2 * shape_.kv_heads) * shape_.head_dim();
    switch (unit_.kind) {
      case UnitKind::kEmbedding:
        return;  // reads tokens from staging
      case UnitKind::kAttention:
        AddInputAndNorm();
        AddSaved("qkv", rows_ * qkv * element_);
        AddSaved("attention_out", rows_ * shape_.hidden * element_);
        AddSaved("lse", rows_ * shape_.heads * kFloatBytes);
        AddTransient("d_qkv", rows_ * qkv * element_);
        AddPartials(std::max(2 * shape_.hidden, qkv));
        return;
      case UnitKind::kFeedForward:
        AddInputAndNorm();
        AddSaved("up", rows_ * shape_.ffn * element_);
        AddSaved("gelu", rows_ * shape_.ffn * element_);
        AddTransient("d_up", rows_ * shape_.ffn * element_);
        AddPartials(std::max(2 * shape_.hidden, shape_.ffn));
        return;
      case UnitKind::kHead:
        AddInputAndNorm();
        AddSaved("logits", rows_ * shape_.vocab * element_, MemoryCategory::kLogits);
        AddSaved("losses", rows_ * kFloatBytes, MemoryCategory::kLogits);
        AddSaved("lse", rows_ * kFloatBytes, MemoryCategory::kLogits);
        AddPartials(2 * shape_.hidden);
        return;
    }
  }

 private:
  // Kept from a micro-batch's forward to its backward. With one chunk and one micro-batch in flight, passes of units
  // alternate strictly and the entry is free outside its unit's two; otherwise other slots are live through both
  // passes.
  void AddSaved(const char* what, int64_t bytes, MemoryCategory category = MemoryCategory::kActivations) {
    AddSavedFrom(builder_.ForwardTick(chunk_, unit_), what, bytes, category);
  }

  void AddSavedFrom(int64_t first_tick, const char* what, int64_t bytes, MemoryCategory category) {
    const bool alternate = chunk_.slots == 1 && builder_.chunks().size() == 1;
    const Lifetime lifetime =
        alternate ? Lifetime{first_tick, builder_.BackwardTick(chunk_, unit_)} : builder_.Passes();
    builder_.Add(absl::StrCat("saved/", unit_.name(), "/", what), category, bytes, chunk_.slots, lifetime);
  }

  void AddTransient(const char* what, int64_t bytes) {
    const int64_t tick = builder_.BackwardTick(chunk_, unit_);
    builder_.Add(absl::StrCat("transient/", unit_.name(), "/", what), MemoryCategory::kActivations, bytes, 1,
                 {tick, tick});
  }

  // What every unit but the embedding has: its input (T, h), the output of the unit before, and that input's norm.
  void AddInputAndNorm() {
    const int64_t written = std::max<int64_t>(builder_.ForwardTick(chunk_, unit_) - 1, 0);  // by the unit before
    AddSavedFrom(written, "input", rows_ * shape_.hidden * element_, MemoryCategory::kActivations);
    AddSaved("mean", rows_ * kFloatBytes);
    AddSaved("rstd", rows_ * kFloatBytes);
    AddSaved("norm_out", rows_ * shape_.hidden * element_);
    AddTransient("d_hidden", rows_ * shape_.hidden * element_);
  }

  // Column sums of gradients (columns) pass through partial sums (kColumnPartitions, columns) f32.
  void AddPartials(int64_t columns) { AddTransient("partials", kColumnPartitions * columns * kFloatBytes); }

  LedgerBuilder& builder_;
  const LedgerBuilder::Chunk& chunk_;
  const Unit& unit_;
  const ModelShape& shape_;
  const int64_t rows_;     // T, of one micro-batch
  const int64_t element_;  // bytes of the compute type
};

}  // namespace

void AddWorkspaces(LedgerBuilder& builder) {
  const ModelShape& shape = builder.shape();
  const Layout& layout = builder.layout();
  builder.Add("workspace/kernels", MemoryCategory::kWorkspace, KernelWorkspaceBytes(layout.threads_per_rank), 1,
              builder.WholeStep());
  if (!builder.has(UnitKind::kAttention)) return;
  builder.Add("workspace/attention", MemoryCategory::kWorkspace,
              AttentionWorkspaceBytes(layout.sequence_length, shape.heads / shape.kv_heads, shape.head_dim(),
                                      layout.threads_per_rank),
              1, builder.WholeStep());
}

void AddUnits(LedgerBuilder& builder) {
  const std::vector<Unit> units = Units(builder.shape());
  for (const LedgerBuilder::Chunk& chunk : builder.chunks()) {
    for (int64_t i = chunk.units.first; i < chunk.units.last; ++i) {
      UnitEntries(builder, chunk, units[static_cast<size_t>(i)]).Add();
    }
  }
}

}  // namespace muster
