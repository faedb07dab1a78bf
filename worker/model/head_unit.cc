#include "worker/model/head_unit.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/plan/parameter_shard.h"
#include "worker/model/unit_binder.h"

namespace muster {
namespace {

// The classes of one tensor rank: `rows` columns, of which the last ranks' may be padding.
kernels::ClassRange ClassesOf(const UnitContext& context, int64_t rows) {
  const int64_t first = context.tensor_rank() * rows;
  return {.first = first, .count = std::clamp<int64_t>(context.shape.vocab - first, 0, rows)};
}

}  // namespace

HeadUnit::HeadUnit(const UnitContext& context, const Unit& unit)
    : kernels_(context.kernels), group_(context.tensor), vocab_(context.shape.vocab), exchange_(context) {
  const int64_t rows = context.rows();
  const int64_t columns = VocabRowsPerTensorRank(context.shape, context.tensor_size());
  const int64_t at_once = context.loss_chunk_tokens == 0 ? rows : std::min(rows, context.loss_chunk_tokens);
  classes_ = ClassesOf(context, columns);
  for (int64_t first = 0; first < rows; first += at_once) chunks_.push_back({first, std::min(at_once, rows - first)});
  const UnitBinder binder(context, unit);
  norm_ = binder.BindNorm("norm");
  logits_.weight = context.shape.tied ? binder.BindTiedWeight() : binder.BindWeight("weight");
  for (int64_t slot = 0; slot < context.slots; ++slot) {
    saved_.push_back({.norm = binder.SavedNorm(norm_, slot),
                      .logits = binder.Saved("logits", slot, context.compute, {at_once, columns}),
                      .losses = binder.Saved("losses", slot, DType::kF32, {rows}),
                      .lse = binder.Saved("lse", slot, DType::kF32, {rows})});
  }
  statistics_ = binder.Transient("statistics", DType::kF32, {rows, kCrossEntropyStatistics});
  all_statistics_ = group_ == nullptr ? statistics_
                                      : binder.Transient("all_statistics", DType::kF32,
                                                         {group_->size() * rows, kCrossEntropyStatistics});
  d_norm_ = binder.Transient("d_hidden", context.compute, {context.stream_rows(), context.shape.hidden});
  partials_ = binder.Partials();
}

absl::Status HeadUnit::Forward(const MicroBatch& batch, const Tensor& input, const Tensor& /*output*/) {
  const Saved& saved = saved_[static_cast<size_t>(batch.slot)];
  norm_.Forward(kernels_, input, saved.norm);
  MUSTER_ASSIGN_OR_RETURN(const Tensor x, exchange_.Gather(saved.norm.out));
  for (const Rows& rows : chunks_) {
    const Tensor logits = saved.logits.slice(0, rows.count);
    logits_.Forward(kernels_, x.slice(rows.first, rows.count), logits);
    kernels::CrossEntropyStatistics(kernels_, logits, batch.targets.slice(rows.first, rows.count), classes_,
                                    statistics_.slice(rows.first, rows.count));
  }
  if (group_ != nullptr) MUSTER_RETURN_IF_ERROR(group_->GatherRows(statistics_, all_statistics_));
  kernels::CrossEntropyFromStatistics(kernels_, all_statistics_, batch.targets, vocab_, saved.losses, saved.lse);
  return absl::OkStatus();
}

absl::Status HeadUnit::Backward(const MicroBatch& batch, const Tensor& input, const Tensor& gradient) {
  const Saved& saved = saved_[static_cast<size_t>(batch.slot)];
  MUSTER_ASSIGN_OR_RETURN(const Tensor x, exchange_.Gather(saved.norm.out));
  const Tensor d_x = exchange_.PartialFor(d_norm_);
  for (const Rows& rows : chunks_) {
    const Tensor logits = saved.logits.slice(0, rows.count);
    const Tensor x_rows = x.slice(rows.first, rows.count);
    if (chunked()) logits_.Forward(kernels_, x_rows, logits);
    kernels::CrossEntropyBackward(kernels_, logits, batch.targets.slice(rows.first, rows.count), classes_,
                                  saved.lse.slice(rows.first, rows.count), batch.loss_scale);
    // Where x was gathered, d_x takes its place row by row.
    logits_.Backward(kernels_, logits, x_rows, d_x.slice(rows.first, rows.count), batch.accumulate || rows.first > 0,
                     partials_);
  }
  MUSTER_RETURN_IF_ERROR(exchange_.Reduce(d_x, d_norm_));
  norm_.Backward(kernels_, d_norm_, input, saved.norm, gradient, /*add_to_d_x=*/false, batch.accumulate, partials_);
  return absl::OkStatus();
}

void HeadUnit::CopyLosses(int64_t slot, absl::Span<float> losses) const {
  kernels_.device().CopyToHost(losses.data(), saved_[static_cast<size_t>(slot)].losses.data,
                               static_cast<int64_t>(losses.size() * sizeof(float)));
}

void HeadUnit::CopyLogits(int64_t slot, int64_t row, absl::Span<float> logits) const {
  const Tensor& all = saved_[static_cast<size_t>(slot)].logits;
  MUSTER_CHECK(
      !chunked() && all.dtype == DType::kF32 && row < all.rows() && static_cast<int64_t>(logits.size()) <= all.cols(),
      "no such logits");
  kernels_.device().CopyToHost(logits.data(), all.as<float>() + row * all.row_stride,
                               static_cast<int64_t>(logits.size() * sizeof(float)));
}

double HeadUnit::LossSum(int64_t slot) const {
  return kernels::SumToHost(kernels_, saved_[static_cast<size_t>(slot)].losses);
}

}  // namespace muster
