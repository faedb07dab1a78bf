// Activations of a rank's units, the workspaces of their kernels, and what tensor parallelism exchanges.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/plan/device_constants.h"
#include "common/plan/ledger_builder.h"
#include "common/plan/parameter_shard.h"

namespace muster {
namespace {

constexpr int64_t kFloatBytes = 4;

// The entries of one unit. T rows of a micro-batch; t tensor ranks.
class UnitEntries {
 public:
  UnitEntries(LedgerBuilder& builder, const LedgerBuilder::Chunk& chunk, const Unit& unit)
      : builder_(builder),
        chunk_(chunk),
        unit_(unit),
        shape_(builder.shape()),
        tensor_(builder.layout().tensor),
        rows_(builder.rows()),
        element_(builder.compute_bytes()),
        rebuilds_(builder.layout().recompute != Recompute::kNone),
        rebuilds_all_(builder.layout().recompute == Recompute::kFull) {}

  void Add() {
    switch (unit_.kind) {
      case UnitKind::kEmbedding:
        return;  // reads tokens from staging
      case UnitKind::kAttention:
        return AddAttention();
      case UnitKind::kFeedForward:
        return AddFeedForward();
      case UnitKind::kHead:
        return AddHead();
    }
  }

 private:
  void AddAttention() {
    const int64_t heads = shape_.heads / tensor_;
    const int64_t qkv = (heads + 2 * KvHeadsPerTensorRank(shape_, tensor_)) * shape_.head_dim();
    AddInput();
    AddNorm(rebuilds_);
    AddKept("qkv", rows_ * qkv * element_, rebuilds_all_);
    AddKept("attention_out", rows_ * heads * shape_.head_dim() * element_, rebuilds_);
    AddKept("lse", rows_ * heads * kFloatBytes, rebuilds_);
    AddTransient("d_qkv", rows_ * qkv * element_);
    AddPartials(std::max(2 * shape_.hidden, qkv));
  }

  void AddFeedForward() {
    const int64_t ffn = shape_.ffn / tensor_;
    const int64_t up = shape_.gated() ? 2 * ffn : ffn;
    AddInput();
    AddNorm(rebuilds_);
    AddKept("up", rows_ * up * element_, rebuilds_all_);
    AddKept("activation", rows_ * ffn * element_, rebuilds_);
    AddTransient("d_activation", rows_ * ffn * element_);
    if (shape_.gated()) AddTransient("d_up", rows_ * up * element_);
    AddPartials(std::max(2 * shape_.hidden, up));
  }

  // Backward follows forward at once: what it keeps costs nothing, and is rebuilt for no mode of recomputation. Only
  // chunks of logits are.
  void AddHead() {
    const int64_t chunk = builder_.layout().loss_chunk_tokens;
    const bool chunked = chunk > 0 && chunk < rows_;
    const int64_t columns = VocabRowsPerTensorRank(shape_, tensor_);
    const int64_t statistics_bytes = rows_ * kCrossEntropyStatistics * kFloatBytes;
    AddInput();
    AddNorm(/*rebuilt=*/false);
    AddKept("logits", (chunked ? chunk : rows_) * columns * element_, chunked, MemoryCategory::kLogits);
    AddKept("losses", rows_ * kFloatBytes, /*rebuilt=*/false, MemoryCategory::kLogits);
    AddKept("lse", rows_ * kFloatBytes, /*rebuilt=*/false, MemoryCategory::kLogits);
    AddForwardTransient("statistics", statistics_bytes);
    if (tensor_ > 1) AddForwardTransient("all_statistics", tensor_ * statistics_bytes);
    AddPartials(2 * shape_.hidden);
  }

  // The unit's input (T/t, h): the output of the unit before, and always kept.
  void AddInput() {
    const int64_t written = std::max<int64_t>(forward_tick() - 1, 0);  // by the unit before
    AddSaved(written, "input", builder_.stream_rows() * shape_.hidden * element_, MemoryCategory::kActivations);
  }

  // Of the input, and the gradient that comes back to it.
  void AddNorm(bool rebuilt) {
    const int64_t rows = builder_.stream_rows();
    if (shape_.norm_bias()) AddKept("mean", rows * kFloatBytes, rebuilt);
    AddKept("rstd", rows * kFloatBytes, rebuilt);
    AddKept("norm_out", rows * shape_.hidden * element_, rebuilt);
    AddTransient("d_hidden", rows * shape_.hidden * element_);
  }

  // What forward leaves to backward: kept in the slot of its micro-batch, or rebuilt by backward in a buffer that lives
  // in the unit's two passes only.
  void AddKept(const char* what, int64_t bytes, bool rebuilt, MemoryCategory category = MemoryCategory::kActivations) {
    if (!rebuilt) return AddSaved(forward_tick(), what, bytes, category);
    builder_.AddRebuilt(absl::StrCat("rebuilt/", unit_.name(), "/", what), category, bytes,
                        {forward_tick(), forward_tick()}, {backward_tick(), backward_tick()});
  }

  // With one chunk and one micro-batch in flight, passes of units alternate strictly and the entry is free outside its
  // unit's two; otherwise other slots are live through both passes.
  void AddSaved(int64_t first_tick, const char* what, int64_t bytes, MemoryCategory category) {
    const bool alternate = chunk_.slots == 1 && builder_.chunks().size() == 1;
    const Lifetime lifetime = alternate ? Lifetime{first_tick, backward_tick()} : builder_.Passes();
    builder_.Add(absl::StrCat("saved/", unit_.name(), "/", what), category, bytes, chunk_.slots, lifetime);
  }

  void AddForwardTransient(const char* what, int64_t bytes) {
    builder_.Add(absl::StrCat("transient/", unit_.name(), "/", what), MemoryCategory::kLogits, bytes, 1,
                 {forward_tick(), forward_tick()});
  }

  void AddTransient(const char* what, int64_t bytes) {
    builder_.Add(absl::StrCat("transient/", unit_.name(), "/", what), MemoryCategory::kActivations, bytes, 1,
                 {backward_tick(), backward_tick()});
  }

  // Column sums of gradients (columns) pass through partial sums (kColumnPartitions, columns) f32.
  void AddPartials(int64_t columns) { AddTransient("partials", kColumnPartitions * columns * kFloatBytes); }

  int64_t forward_tick() const { return builder_.ForwardTick(chunk_, unit_); }
  int64_t backward_tick() const { return builder_.BackwardTick(chunk_, unit_); }

  LedgerBuilder& builder_;
  const LedgerBuilder::Chunk& chunk_;
  const Unit& unit_;
  const ModelShape& shape_;
  const int64_t tensor_;
  const int64_t rows_;     // T, of one micro-batch
  const int64_t element_;  // bytes of the compute type
  const bool rebuilds_;    // norms, attention and activations, from the results of the large products
  const bool rebuilds_all_;
};

}  // namespace

void AddWorkspaces(LedgerBuilder& builder) {
  const ModelShape& shape = builder.shape();
  const Layout& layout = builder.layout();
  builder.Add("workspace/kernels", MemoryCategory::kWorkspace, KernelWorkspaceBytes(layout.threads_per_rank), 1,
              builder.WholeStep());
  if (!builder.has(UnitKind::kAttention)) return;
  const int64_t group = shape.heads / layout.tensor / KvHeadsPerTensorRank(shape, layout.tensor);
  builder.Add("workspace/attention", MemoryCategory::kWorkspace,
              AttentionWorkspaceBytes(layout.sequence_length, group, shape.head_dim(), layout.threads_per_rank), 1,
              builder.WholeStep());
  if (!shape.rotary()) return;
  builder.Add(kRopeTable, MemoryCategory::kWorkspace, RopeTableBytes(layout.sequence_length, shape.head_dim()), 1,
              builder.WholeStep());
}

void AddUnits(LedgerBuilder& builder) {
  const std::vector<Unit> units = Units(builder.shape());
  for (const LedgerBuilder::Chunk& chunk : builder.chunks()) {
    for (int64_t i = chunk.units.first; i < chunk.units.last; ++i) {
      UnitEntries(builder, chunk, units[static_cast<size_t>(i)]).Add();
    }
  }
  if (builder.layout().tensor == 1) return;
  const int64_t all_rows_bytes = builder.rows() * builder.shape().hidden * builder.compute_bytes();
  for (const char* name : {kTensorRows, kTensorParts}) {
    builder.Add(name, MemoryCategory::kCommunication, all_rows_bytes, 1, builder.Passes());
  }
}

}  // namespace muster
