#include "worker/model/head_unit.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/plan/ledger.h"
#include "worker/kernels/kernels.h"
#include "worker/model/unit_binder.h"

namespace muster {
namespace {

Linear BindTiedLogits(const UnitContext& context) {
  const std::vector<int64_t> dims = {context.shape.vocab, context.shape.hidden};
  return {.weight = {.value = context.memory.Bind(absl::StrCat("parameter/", kTiedParameter), context.compute, dims),
                     .gradient = context.memory.Bind(kTiedHeadGradient, DType::kF32, dims)}};
}

}  // namespace

HeadUnit::HeadUnit(const UnitContext& context, const Unit& unit) : kernels_(context.kernels) {
  const int64_t rows = context.rows();
  const int64_t hidden = context.shape.hidden;
  const UnitBinder binder(context, unit);
  norm_ = binder.BindNorm("norm");
  logits_ = context.shape.tied ? BindTiedLogits(context) : Linear{.weight = binder.BindWeight("weight")};
  for (int64_t slot = 0; slot < context.slots; ++slot) {
    saved_.push_back({.mean = binder.Saved("mean", slot, DType::kF32, {rows}),
                      .rstd = binder.Saved("rstd", slot, DType::kF32, {rows}),
                      .norm_out = binder.Saved("norm_out", slot, context.compute, {rows, hidden}),
                      .logits = binder.Saved("logits", slot, context.compute, {rows, context.shape.vocab}),
                      .losses = binder.Saved("losses", slot, DType::kF32, {rows}),
                      .lse = binder.Saved("lse", slot, DType::kF32, {rows})});
  }
  d_hidden_ = binder.Transient("d_hidden", context.compute, {rows, hidden});
  partials_ = binder.Partials();
}

absl::Status HeadUnit::Forward(const MicroBatch& batch, const Tensor& input, const Tensor& /*output*/) {
  const Saved& saved = saved_[static_cast<size_t>(batch.slot)];
  norm_.Forward(kernels_, input, saved.norm_out, saved.mean, saved.rstd);
  logits_.Forward(kernels_, saved.norm_out, saved.logits);
  kernels::CrossEntropyForward(kernels_, saved.logits, batch.targets, saved.losses, saved.lse);
  return absl::OkStatus();
}

absl::Status HeadUnit::Backward(const MicroBatch& batch, const Tensor& input, const Tensor& gradient) {
  const Saved& saved = saved_[static_cast<size_t>(batch.slot)];
  kernels::CrossEntropyBackward(kernels_, saved.logits, batch.targets, {.first = 0, .count = saved.logits.cols()},
                                saved.lse, batch.loss_scale);
  logits_.Backward(kernels_, saved.logits, saved.norm_out, d_hidden_, batch.accumulate, partials_);
  norm_.Backward(kernels_, d_hidden_, {input, saved.mean, saved.rstd}, gradient, /*add_to_d_x=*/false, batch.accumulate,
                 partials_);
  return absl::OkStatus();
}

void HeadUnit::CopyLosses(int64_t slot, absl::Span<float> losses) const {
  kernels_.device().CopyToHost(losses.data(), saved_[static_cast<size_t>(slot)].losses.data,
                               static_cast<int64_t>(losses.size() * sizeof(float)));
}

void HeadUnit::CopyLogits(int64_t slot, int64_t row, absl::Span<float> logits) const {
  const Tensor& all = saved_[static_cast<size_t>(slot)].logits;
  MUSTER_CHECK(all.dtype == DType::kF32 && row < all.rows() && static_cast<int64_t>(logits.size()) <= all.cols(),
               "no such logits");
  kernels_.device().CopyToHost(logits.data(), all.as<float>() + row * all.row_stride,
                               static_cast<int64_t>(logits.size() * sizeof(float)));
}

double HeadUnit::LossSum(int64_t slot) const {
  return kernels::SumToHost(kernels_, saved_[static_cast<size_t>(slot)].losses);
}

}  // namespace muster
