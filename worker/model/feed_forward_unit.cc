#include "worker/model/feed_forward_unit.h"

#include <vector>

#include "worker/kernels/kernels.h"
#include "worker/model/unit_binder.h"

namespace muster {
namespace {

class FeedForwardUnit : public ModelUnit {
 public:
  FeedForwardUnit(const UnitContext& context, const Unit& unit);
  absl::Status Forward(const MicroBatch& batch, const Tensor& input, const Tensor& output) override;
  absl::Status Backward(const MicroBatch& batch, const Tensor& input, const Tensor& gradient) override;

 private:
  struct Saved {
    Tensor mean, rstd;  // (T) f32
    Tensor norm_out;    // (T, h)
    Tensor up;          // (T, f), before the GELU
    Tensor gelu;        // (T, f), after it
  };

  KernelContext& kernels_;
  LayerNorm norm_;
  Linear up_;                 // h -> f
  Linear down_;               // f -> h
  std::vector<Saved> saved_;  // by slot
  Tensor d_hidden_;           // (T, h), gradient of norm_out
  Tensor d_up_;               // (T, f), gradient of gelu, then of up
  Tensor partials_;
};

FeedForwardUnit::FeedForwardUnit(const UnitContext& context, const Unit& unit) : kernels_(context.kernels) {
  const int64_t rows = context.rows();
  const int64_t hidden = context.shape.hidden;
  const int64_t ffn = context.shape.ffn;
  const UnitBinder binder(context, unit);
  norm_ = binder.BindNorm("norm");
  up_ = binder.BindLinear("up");
  down_ = binder.BindLinear("down");
  for (int64_t slot = 0; slot < context.slots; ++slot) {
    saved_.push_back({.mean = binder.Saved("mean", slot, DType::kF32, {rows}),
                      .rstd = binder.Saved("rstd", slot, DType::kF32, {rows}),
                      .norm_out = binder.Saved("norm_out", slot, context.compute, {rows, hidden}),
                      .up = binder.Saved("up", slot, context.compute, {rows, ffn}),
                      .gelu = binder.Saved("gelu", slot, context.compute, {rows, ffn})});
  }
  d_hidden_ = binder.Transient("d_hidden", context.compute, {rows, hidden});
  d_up_ = binder.Transient("d_up", context.compute, {rows, ffn});
  partials_ = binder.Partials();
}

absl::Status FeedForwardUnit::Forward(const MicroBatch& batch, const Tensor& input, const Tensor& output) {
  const Saved& saved = saved_[static_cast<size_t>(batch.slot)];
  norm_.Forward(kernels_, input, saved.norm_out, saved.mean, saved.rstd);
  up_.Forward(kernels_, saved.norm_out, saved.up);
  kernels::GeluForward(kernels_, saved.up, saved.gelu);
  down_.Forward(kernels_, saved.gelu, output);
  kernels::Add(kernels_, output, input, output);
  return absl::OkStatus();
}

absl::Status FeedForwardUnit::Backward(const MicroBatch& batch, const Tensor& input, const Tensor& gradient) {
  const Saved& saved = saved_[static_cast<size_t>(batch.slot)];
  down_.Backward(kernels_, gradient, saved.gelu, d_up_, batch.accumulate, partials_);
  kernels::GeluBackward(kernels_, d_up_, saved.up, d_up_);
  up_.Backward(kernels_, d_up_, saved.norm_out, d_hidden_, batch.accumulate, partials_);
  // The residual's gradient is in `gradient` already; the norm's is added to it.
  norm_.Backward(kernels_, d_hidden_, {input, saved.mean, saved.rstd}, gradient, /*add_to_d_x=*/true, batch.accumulate,
                 partials_);
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<ModelUnit> MakeFeedForwardUnit(const UnitContext& context, const Unit& unit) {
  return std::make_unique<FeedForwardUnit>(context, unit);
}

}  // namespace muster
