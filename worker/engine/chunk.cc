#include "worker/engine/chunk.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/plan/ledger.h"
#include "worker/engine/finite.h"
#include "worker/model/attention_unit.h"
#include "worker/model/make_unit.h"

namespace muster {
namespace {

Tensor BindStream(const UnitContext& context, const std::string& entry, int64_t slot) {
  return context.memory.Bind(entry, context.compute, {context.stream_rows(), context.shape.hidden}, slot);
}

// The residual stream at one place, (T/t, h) for each slot; empty tensors where the chunk has no such place.
std::vector<Tensor> BindSlots(const UnitContext& context, const std::string& entry) {
  std::vector<Tensor> slots(static_cast<size_t>(context.slots));
  if (!context.memory.has(entry)) return slots;
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    slots[slot] = BindStream(context, entry, static_cast<int64_t>(slot));
  }
  return slots;
}

}  // namespace

Chunk::Chunk(const UnitContext& context, int64_t index, UnitRange units, TraceRecorder& recorder)
    : context_(context), recorder_(recorder), index_(index), has_embedding_(units.first == 0) {
  FillAttentionTables(context_);
  const std::vector<Unit> model_units = Units(context_.shape);
  for (int64_t i = units.first; i < units.last; ++i) {
    descriptions_.push_back(model_units[static_cast<size_t>(i)]);
    names_.push_back(descriptions_.back().name());
  }
  Bind();
}

void Chunk::Rebind(DType compute) {
  MUSTER_CHECK(SizeOf(compute) == SizeOf(context_.compute), "another width needs another memory plan");
  context_.compute = compute;
  units_.clear();
  stream_.clear();
  gradients_.clear();
  Bind();
}

void Chunk::Bind() {
  for (const Unit& unit : descriptions_) {
    units_.push_back(MakeUnit(context_, unit));
    stream_.push_back(BindSlots(context_, absl::StrCat("saved/", unit.name(), "/input")));
    if (unit.kind == UnitKind::kHead) head_ = static_cast<HeadUnit*>(units_.back().get());
  }
  stream_.push_back(BindSlots(context_, absl::StrCat(kStreamOutput, index_)));
  const int64_t gradient_slots = has_embedding() && has_head() ? 1 : 2;
  for (int64_t slot = 0; slot < gradient_slots; ++slot) {
    gradients_.push_back(BindStream(context_, absl::StrCat(kStreamGradient, index_), slot));
  }
}

absl::Status Chunk::Forward(const MicroBatch& batch) {
  const size_t slot = static_cast<size_t>(batch.slot);
  for (size_t k = 0; k < units_.size(); ++k) {
    const TraceScope span(recorder_, TraceSpan::Category::kUnit, names_[k].c_str());
    MUSTER_RETURN_IF_ERROR(units_[k]->Forward(batch, stream_[k][slot], stream_[k + 1][slot]));
  }
  return absl::OkStatus();
}

double Chunk::LossSum(int64_t slot) const { return counts_loss() ? head_->LossSum(slot) : 0; }

absl::Status Chunk::Backward(const MicroBatch& batch, const Tensor& gradient, const UnitDone& unit_done) {
  const size_t slot = static_cast<size_t>(batch.slot);
  for (size_t k = units_.size(); k-- > 0;) {
    {
      const TraceScope span(recorder_, TraceSpan::Category::kUnit, names_[k].c_str());
      MUSTER_RETURN_IF_ERROR(units_[k]->Backward(batch, stream_[k][slot], gradient));
    }
    if (unit_done) MUSTER_RETURN_IF_ERROR(unit_done(descriptions_[k]));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Unit>> Chunk::FirstNonFiniteUnit(const MicroBatch& batch) {
  const size_t slot = static_cast<size_t>(batch.slot);
  std::optional<Unit> first;
  for (size_t k = 0; k < units_.size(); ++k) {
    MUSTER_RETURN_IF_ERROR(units_[k]->Forward(batch, stream_[k][slot], stream_[k + 1][slot]));
    const bool finite = units_[k].get() == head_ ? std::isfinite(head_->LossSum(batch.slot))
                                                 : AllFinite(context_.kernels.device(), stream_[k + 1][slot]);
    if (!finite && !first.has_value()) first = descriptions_[k];
  }
  return first;
}

}  // namespace muster
