#include "worker/model/attention_unit.h"

#include <vector>

#include "worker/kernels/kernels.h"
#include "worker/model/unit_binder.h"

namespace muster {
namespace {

class AttentionUnit : public ModelUnit {
 public:
  AttentionUnit(const UnitContext& context, const Unit& unit);
  absl::Status Forward(const MicroBatch& batch, const Tensor& input, const Tensor& output) override;
  absl::Status Backward(const MicroBatch& batch, const Tensor& input, const Tensor& gradient) override;

 private:
  struct Saved {
    Tensor mean, rstd;     // (T) f32
    Tensor norm_out;       // (T, h)
    Tensor qkv;            // (T, (heads + 2 kv_heads) d): queries, keys, values along a row
    Tensor attention_out;  // (T, h), heads side by side
    Tensor lse;            // (batch, heads, sequence) f32
  };

  KernelContext& kernels_;
  const kernels::AttentionShape shape_;
  LayerNorm norm_;
  Linear qkv_;                // h -> (heads + 2 kv_heads) d
  Linear projection_;         // h -> h
  std::vector<Saved> saved_;  // by slot
  Tensor d_hidden_;           // (T, h): gradient of attention_out, then of norm_out
  Tensor d_qkv_;              // as qkv
  Tensor partials_;
  Tensor workspace_;  // of the attention kernels, shared by all units
};

AttentionUnit::AttentionUnit(const UnitContext& context, const Unit& unit)
    : kernels_(context.kernels),
      shape_{.batch = context.micro_batch,
             .sequence = context.sequence_length,
             .heads = context.shape.heads,
             .kv_heads = context.shape.kv_heads,
             .head_dim = context.shape.head_dim()} {
  const int64_t rows = context.rows();
  const int64_t hidden = context.shape.hidden;
  const int64_t qkv = (shape_.heads + 2 * shape_.kv_heads) * shape_.head_dim;
  const UnitBinder binder(context, unit);
  norm_ = binder.BindNorm("norm");
  qkv_ = binder.BindLinear("qkv");
  projection_ = binder.BindLinear("projection");
  for (int64_t slot = 0; slot < context.slots; ++slot) {
    saved_.push_back({.mean = binder.Saved("mean", slot, DType::kF32, {rows}),
                      .rstd = binder.Saved("rstd", slot, DType::kF32, {rows}),
                      .norm_out = binder.Saved("norm_out", slot, context.compute, {rows, hidden}),
                      .qkv = binder.Saved("qkv", slot, context.compute, {rows, qkv}),
                      .attention_out = binder.Saved("attention_out", slot, context.compute, {rows, hidden}),
                      .lse = binder.Saved("lse", slot, DType::kF32, {shape_.batch, shape_.heads, shape_.sequence})});
  }
  d_hidden_ = binder.Transient("d_hidden", context.compute, {rows, hidden});
  d_qkv_ = binder.Transient("d_qkv", context.compute, {rows, qkv});
  partials_ = binder.Partials();
  workspace_ = context.memory.BindBytes("workspace/attention");
}

absl::Status AttentionUnit::Forward(const MicroBatch& batch, const Tensor& input, const Tensor& output) {
  const Saved& saved = saved_[static_cast<size_t>(batch.slot)];
  norm_.Forward(kernels_, input, saved.norm_out, saved.mean, saved.rstd);
  qkv_.Forward(kernels_, saved.norm_out, saved.qkv);
  kernels::AttentionForward(kernels_, shape_, {saved.qkv, batch.document_starts}, saved.attention_out, saved.lse,
                            workspace_);
  projection_.Forward(kernels_, saved.attention_out, output);
  kernels::Add(kernels_, output, input, output);
  return absl::OkStatus();
}

absl::Status AttentionUnit::Backward(const MicroBatch& batch, const Tensor& input, const Tensor& gradient) {
  const Saved& saved = saved_[static_cast<size_t>(batch.slot)];
  projection_.Backward(kernels_, gradient, saved.attention_out, d_hidden_, batch.accumulate, partials_);
  kernels::AttentionBackward(kernels_, shape_, d_hidden_, {saved.qkv, batch.document_starts}, saved.attention_out,
                             saved.lse, d_qkv_, workspace_);
  qkv_.Backward(kernels_, d_qkv_, saved.norm_out, d_hidden_, batch.accumulate, partials_);
  // The residual's gradient is in `gradient` already; the norm's is added to it.
  norm_.Backward(kernels_, d_hidden_, {input, saved.mean, saved.rstd}, gradient, /*add_to_d_x=*/true, batch.accumulate,
                 partials_);
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<ModelUnit> MakeAttentionUnit(const UnitContext& context, const Unit& unit) {
  return std::make_unique<AttentionUnit>(context, unit);
}

}  // namespace muster
