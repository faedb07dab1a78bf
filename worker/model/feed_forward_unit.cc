#include "worker/model/feed_forward_unit.h"

#include <vector>

#include "common/base/status_macros.h"
#include "worker/kernels/kernels.h"
#include "worker/model/layers.h"
#include "worker/model/row_exchange.h"
#include "worker/model/unit_binder.h"

namespace muster {
namespace {

class FeedForwardUnit : public ModelUnit {
 public:
  FeedForwardUnit(const UnitContext& context, const Unit& unit);
  absl::Status Forward(const MicroBatch& batch, const Tensor& input, const Tensor& output) override;
  absl::Status Backward(const MicroBatch& batch, const Tensor& input, const Tensor& gradient) override;

 private:
  // f is this tensor rank's part of the inner width.
  struct Saved {
    Norm::State norm;   // (T/t, h)
    Tensor up;          // (T, f); gated: (T, 2f), the gate's columns first
    Tensor activation;  // (T, f): gelu(up), or silu(gate) * up
  };

  absl::Status ProjectUp(const Saved& saved) const;
  void Activate(const Saved& saved) const;
  // From d_activation_ to d_up_.
  void ActivateBackward(const Saved& saved) const;

  KernelContext& kernels_;
  const bool gated_;
  const Recompute recompute_;
  const RowExchange exchange_;
  Norm norm_;
  Linear up_;                 // h -> f, or h -> 2f
  ResidualLinear down_;       // f -> h
  std::vector<Saved> saved_;  // by slot
  Tensor d_norm_;             // (T/t, h): gradient of norm.out
  Tensor d_activation_;       // (T, f)
  Tensor d_up_;               // as up; without a gate in the same bytes as d_activation_
  Tensor partials_;
};

FeedForwardUnit::FeedForwardUnit(const UnitContext& context, const Unit& unit)
    : kernels_(context.kernels), gated_(context.shape.gated()), recompute_(context.recompute), exchange_(context) {
  const int64_t rows = context.rows();
  const int64_t ffn = context.shape.ffn / context.tensor_size();
  const int64_t up = gated_ ? 2 * ffn : ffn;
  const UnitBinder binder(context, unit);
  norm_ = binder.BindNorm("norm");
  up_ = binder.BindLinear(gated_ ? "gate_up" : "up");
  down_ = binder.BindResidualLinear("down");
  for (int64_t slot = 0; slot < context.slots; ++slot) {
    saved_.push_back({.norm = binder.SavedNorm(norm_, slot),
                      .up = binder.Saved("up", slot, context.compute, {rows, up}),
                      .activation = binder.Saved("activation", slot, context.compute, {rows, ffn})});
  }
  d_norm_ = binder.Transient("d_hidden", context.compute, {context.stream_rows(), context.shape.hidden});
  d_activation_ = binder.Transient("d_activation", context.compute, {rows, ffn});
  d_up_ = gated_ ? binder.Transient("d_up", context.compute, {rows, up}) : d_activation_;
  partials_ = binder.Partials();
}

absl::Status FeedForwardUnit::ProjectUp(const Saved& saved) const {
  MUSTER_ASSIGN_OR_RETURN(const Tensor x, exchange_.Gather(saved.norm.out));
  up_.Forward(kernels_, x, saved.up);
  return absl::OkStatus();
}

void FeedForwardUnit::Activate(const Saved& saved) const {
  if (gated_) {
    kernels::SwiGluForward(kernels_, saved.up, saved.activation);
  } else {
    kernels::GeluForward(kernels_, saved.up, saved.activation);
  }
}

void FeedForwardUnit::ActivateBackward(const Saved& saved) const {
  if (gated_) {
    kernels::SwiGluBackward(kernels_, d_activation_, saved.up, d_up_);
  } else {
    kernels::GeluBackward(kernels_, d_activation_, saved.up, d_up_);
  }
}

absl::Status FeedForwardUnit::Forward(const MicroBatch& batch, const Tensor& input, const Tensor& output) {
  const Saved& saved = saved_[static_cast<size_t>(batch.slot)];
  norm_.Forward(kernels_, input, saved.norm);
  MUSTER_RETURN_IF_ERROR(ProjectUp(saved));
  Activate(saved);
  return down_.Forward(kernels_, exchange_, saved.activation, input, output);
}

absl::Status FeedForwardUnit::Backward(const MicroBatch& batch, const Tensor& input, const Tensor& gradient) {
  const Saved& saved = saved_[static_cast<size_t>(batch.slot)];
  if (recompute_ != Recompute::kNone) {
    norm_.Forward(kernels_, input, saved.norm);
    if (recompute_ == Recompute::kFull) MUSTER_RETURN_IF_ERROR(ProjectUp(saved));
    Activate(saved);
  }
  MUSTER_RETURN_IF_ERROR(
      down_.Backward(kernels_, exchange_, gradient, saved.activation, d_activation_, batch.accumulate, partials_));
  ActivateBackward(saved);
  MUSTER_ASSIGN_OR_RETURN(const Tensor x, exchange_.Gather(saved.norm.out));
  const Tensor d_x = exchange_.PartialFor(d_norm_);
  up_.Backward(kernels_, d_up_, x, d_x, batch.accumulate, partials_);
  MUSTER_RETURN_IF_ERROR(exchange_.Reduce(d_x, d_norm_));
  // The residual's gradient is in `gradient` already; the norm's is added to it.
  norm_.Backward(kernels_, d_norm_, input, saved.norm, gradient, /*add_to_d_x=*/true, batch.accumulate, partials_);
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<ModelUnit> MakeFeedForwardUnit(const UnitContext& context, const Unit& unit) {
  return std::make_unique<FeedForwardUnit>(context, unit);
}

}  // namespace muster
