#include "worker/model/attention_unit.h"

#include <vector>

#include "common/base/status_macros.h"
#include "common/plan/ledger.h"
#include "common/plan/parameter_shard.h"
#include "worker/kernels/kernels.h"
#include "worker/model/layers.h"
#include "worker/model/row_exchange.h"
#include "worker/model/unit_binder.h"

namespace muster {
namespace {

// Of this tensor rank's heads.
kernels::AttentionShape ShapeOf(const UnitContext& context) {
  return {.batch = context.micro_batch,
          .sequence = context.sequence_length,
          .heads = context.shape.heads / context.tensor_size(),
          .kv_heads = KvHeadsPerTensorRank(context.shape, context.tensor_size()),
          .head_dim = context.shape.head_dim()};
}

// Cosines and sines of the rotary positions, f32 (sequence, head_dim); empty in families without them.
Tensor BindRopeTable(const UnitContext& context) {
  if (!context.shape.rotary()) return Tensor();
  return context.memory.Bind(kRopeTable, DType::kF32, {context.sequence_length, context.shape.head_dim()});
}

class AttentionUnit : public ModelUnit {
 public:
  AttentionUnit(const UnitContext& context, const Unit& unit);
  absl::Status Forward(const MicroBatch& batch, const Tensor& input, const Tensor& output) override;
  absl::Status Backward(const MicroBatch& batch, const Tensor& input, const Tensor& gradient) override;

 private:
  // heads and kv_heads are this tensor rank's.
  struct Saved {
    Norm::State norm;  // (T/t, h)
    Tensor qkv;        // (T, (heads + 2 kv_heads) d): queries, keys, values along a row, turned by RoPE
    Tensor out;        // (T, heads d), heads side by side
    Tensor lse;        // (batch, heads, sequence) f32
  };

  absl::Status ProjectQkv(const Saved& saved) const;
  void Attend(const MicroBatch& batch, const Saved& saved) const;

  KernelContext& kernels_;
  const kernels::AttentionShape shape_;
  const Recompute recompute_;
  const RowExchange exchange_;
  Norm norm_;
  Linear qkv_;                 // h -> (heads + 2 kv_heads) d
  ResidualLinear projection_;  // heads d -> h
  std::vector<Saved> saved_;   // by slot
  Tensor d_out_;               // (T, heads d): gradient of out
  Tensor d_norm_;              // (T/t, h): gradient of norm.out, in the same bytes
  Tensor d_qkv_;               // as qkv
  Tensor partials_;
  Tensor rope_table_;
  Tensor workspace_;  // of the attention kernels, shared by all units
};

AttentionUnit::AttentionUnit(const UnitContext& context, const Unit& unit)
    : kernels_(context.kernels),
      shape_(ShapeOf(context)),
      recompute_(context.recompute),
      exchange_(context),
      rope_table_(BindRopeTable(context)) {
  const int64_t rows = context.rows();
  const int64_t width = shape_.heads * shape_.head_dim;
  const int64_t qkv = (shape_.heads + 2 * shape_.kv_heads) * shape_.head_dim;
  const UnitBinder binder(context, unit);
  norm_ = binder.BindNorm("norm");
  qkv_ = binder.BindLinear("qkv");
  projection_ = binder.BindResidualLinear("projection");
  for (int64_t slot = 0; slot < context.slots; ++slot) {
    saved_.push_back({.norm = binder.SavedNorm(norm_, slot),
                      .qkv = binder.Saved("qkv", slot, context.compute, {rows, qkv}),
                      .out = binder.Saved("attention_out", slot, context.compute, {rows, width}),
                      .lse = binder.Saved("lse", slot, DType::kF32, {shape_.batch, shape_.heads, shape_.sequence})});
  }
  d_out_ = binder.Transient("d_hidden", context.compute, {rows, width});
  d_norm_ = binder.Transient("d_hidden", context.compute, {context.stream_rows(), context.shape.hidden});
  d_qkv_ = binder.Transient("d_qkv", context.compute, {rows, qkv});
  partials_ = binder.Partials();
  workspace_ = context.memory.BindBytes("workspace/attention");
}

absl::Status AttentionUnit::ProjectQkv(const Saved& saved) const {
  MUSTER_ASSIGN_OR_RETURN(const Tensor x, exchange_.Gather(saved.norm.out));
  qkv_.Forward(kernels_, x, saved.qkv);
  if (rope_table_.data != nullptr) kernels::Rope(kernels_, rope_table_, shape_, saved.qkv, /*inverse=*/false);
  return absl::OkStatus();
}

void AttentionUnit::Attend(const MicroBatch& batch, const Saved& saved) const {
  kernels::AttentionForward(kernels_, shape_, {.qkv = saved.qkv, .document_starts = batch.document_starts}, saved.out,
                            saved.lse, workspace_);
}

absl::Status AttentionUnit::Forward(const MicroBatch& batch, const Tensor& input, const Tensor& output) {
  const Saved& saved = saved_[static_cast<size_t>(batch.slot)];
  norm_.Forward(kernels_, input, saved.norm);
  MUSTER_RETURN_IF_ERROR(ProjectQkv(saved));
  Attend(batch, saved);
  return projection_.Forward(kernels_, exchange_, saved.out, input, output);
}

absl::Status AttentionUnit::Backward(const MicroBatch& batch, const Tensor& input, const Tensor& gradient) {
  const Saved& saved = saved_[static_cast<size_t>(batch.slot)];
  if (recompute_ != Recompute::kNone) {
    norm_.Forward(kernels_, input, saved.norm);
    if (recompute_ == Recompute::kFull) MUSTER_RETURN_IF_ERROR(ProjectQkv(saved));
    Attend(batch, saved);
  }
  MUSTER_RETURN_IF_ERROR(
      projection_.Backward(kernels_, exchange_, gradient, saved.out, d_out_, batch.accumulate, partials_));
  kernels::AttentionBackward(kernels_, shape_, d_out_, {.qkv = saved.qkv, .document_starts = batch.document_starts},
                             saved.out, saved.lse, d_qkv_, workspace_);
  if (rope_table_.data != nullptr) kernels::Rope(kernels_, rope_table_, shape_, d_qkv_, /*inverse=*/true);
  MUSTER_ASSIGN_OR_RETURN(const Tensor x, exchange_.Gather(saved.norm.out));
  const Tensor d_x = exchange_.PartialFor(d_norm_);
  qkv_.Backward(kernels_, d_qkv_, x, d_x, batch.accumulate, partials_);
  MUSTER_RETURN_IF_ERROR(exchange_.Reduce(d_x, d_norm_));
  // The residual's gradient is in `gradient` already; the norm's is added to it.
  norm_.Backward(kernels_, d_norm_, input, saved.norm, gradient, /*add_to_d_x=*/true, batch.accumulate, partials_);
  return absl::OkStatus();
}

}  // namespace

void FillAttentionTables(const UnitContext& context) {
  if (!context.memory.has(kRopeTable)) return;
  kernels::FillRopeTable(context.kernels, context.shape.rope_base, BindRopeTable(context));
}

std::unique_ptr<ModelUnit> MakeAttentionUnit(const UnitContext& context, const Unit& unit) {
  return std::make_unique<AttentionUnit>(context, unit);
}

}  // namespace muster
