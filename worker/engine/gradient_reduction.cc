#include "worker/engine/gradient_reduction.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/plan/ledger.h"
#include "worker/kernels/kernels.h"

namespace muster {
namespace {

// 1 MiB of sums: what is added up stays in a second-level cache while the parts stream by.
constexpr int64_t kSumBlock = int64_t{1} << 18;

Tensor Floats(float* data, int64_t elements) { return Tensor(data, DType::kF32, {elements}); }

// All of an entry, in f32.
Tensor BindFloats(StageMemory& memory, const std::string& entry) {
  const Tensor bytes = memory.BindBytes(entry);
  return Floats(bytes.as<float>(), bytes.elements() / SizeOf(DType::kF32));
}

// What this rank has use for of the accumulators of a tied weight.
ElementRun TiedPart(const GradientReduction::Share& share) {
  for (const ParameterInfo& parameter : ChunkParameters(share.shape, share.chunks)) {
    if (!share.shape.tied || parameter.name != kTiedParameter) continue;
    const ParameterShard shard =
        ShardOnTensorRank(share.shape, parameter, share.layout.tensor, share.coordinate.tensor);
    if (shard.pieces.empty()) return {};
    const ShardPiece& rows = shard.pieces.front();
    if (!share.layout.optimizer_sharding) return {0, rows.elements()};
    const RowBlock mine = ReplicaRows(rows.rows(), share.layout.data, share.coordinate.data);
    return {mine.first * rows.row_elements(), (mine.last - mine.first) * rows.row_elements()};
  }
  return {};
}

}  // namespace

SumParts SumWithKernels(KernelContext& kernels) {
  return [&kernels](absl::Span<float* const> parts, float* out, int64_t elements) {
    for (int64_t first = 0; first < elements; first += kSumBlock) {
      const int64_t count = std::min(kSumBlock, elements - first);
      // Where the output is a later part it must be read before it is written: sums collect in the first part till
      // then.
      float* sums = parts[0];
      for (size_t part = 1; part < parts.size(); ++part) {
        float* to = part + 1 == parts.size() ? out : parts[0];
        kernels::Add(kernels, Floats(sums + first, count), Floats(parts[part] + first, count),
                     Floats(to + first, count));
      }
    }
  };
}

GradientReduction::GradientReduction(const Share& share, StageMemory& memory, KernelContext& kernels,
                                     const RankGroups& groups, PhaseTimer& timer)
    : timer_(timer),
      tensor_group_(groups.tensor.get()),
      sum_(SumWithKernels(kernels)),
      tied_embedding_(memory, kernels, groups.embedding.get(), TiedPart(share)) {
  const std::vector<GradientInfo> gradients =
      GradientsOf(share.shape, share.chunks, share.layout.tensor, share.coordinate.tensor);
  for (const GradientInfo& gradient : gradients) accumulators_.push_back(BindFloats(memory, gradient.entry));
  if (tensor_group_ != nullptr) BindSharedPieces(gradients, share.coordinate.tensor, memory);
  if (groups.data == nullptr) return;
  const Tensor scratch = BindFloats(memory, kReductionScratch);
  reducer_.emplace(*groups.data, absl::Span<float>(scratch.as<float>(), static_cast<size_t>(scratch.elements())),
                   GradientReducer::Options{.gather = !share.layout.optimizer_sharding, .sum = sum_});
  BindBuckets(PlanReduction(gradients, share.layout.data, ReductionPartElements(share.shape, share.layout)));
}

absl::Status GradientReduction::GradientsReady(int64_t unit) {
  if (!reducer_.has_value()) return absl::OkStatus();
  PhaseScope scope(timer_, Phase::kCommExposed);
  for (; started_ < units_.size() && units_[started_] >= unit; ++started_) {
    MUSTER_RETURN_IF_ERROR(reducer_->Start(during_backward_[started_]));
  }
  return absl::OkStatus();
}

absl::Status GradientReduction::Finish() {
  MUSTER_RETURN_IF_ERROR(GradientsReady(/*unit=*/0));
  PhaseScope scope(timer_, Phase::kCommExposed);
  MUSTER_RETURN_IF_ERROR(SumOverTensorGroup());
  if (reducer_.has_value()) {
    for (const GradientBucket& bucket : after_backward_) MUSTER_RETURN_IF_ERROR(reducer_->Start(bucket));
    MUSTER_RETURN_IF_ERROR(reducer_->Finish());
  }
  started_ = 0;
  return tied_embedding_.AddGradients();
}

void GradientReduction::BindBuckets(const ReductionPlan& plan) {
  for (const ReductionBucket& bucket : plan.during_backward) {
    units_.push_back(bucket.unit);
    during_backward_.push_back(BucketOf(bucket));
  }
  for (const ReductionBucket& bucket : plan.after_backward) after_backward_.push_back(BucketOf(bucket));
}

GradientBucket GradientReduction::BucketOf(const ReductionBucket& bucket) const {
  GradientBucket bound;
  for (const ReductionSegment& segment : bucket.segments) {
    bound.emplace_back();
    for (const ElementRun& run : segment.runs) {
      bound.back().push_back({accumulators_[segment.gradient].as<float>() + run.first, run.elements});
    }
  }
  return bound;
}

void GradientReduction::BindSharedPieces(const std::vector<GradientInfo>& gradients, int64_t tensor_rank,
                                         StageMemory& memory) {
  if (!memory.has(kTensorGradients)) return;
  float* scratch = memory.BindBytes(kTensorGradients).as<float>();
  for (size_t i = 0; i < gradients.size(); ++i) {
    for (const ShardPiece& piece : gradients[i].shard.pieces) {
      if (!piece.partial_gradients) continue;
      SharedPiece shared;
      shared.gradient = Floats(accumulators_[i].as<float>() + piece.local_first, piece.elements());
      for (int64_t sharer = piece.first_sharer; sharer < piece.first_sharer + piece.sharers; ++sharer) {
        if (sharer == tensor_rank) {
          shared.parts.push_back(shared.gradient.as<float>());
          continue;
        }
        shared.others.push_back(static_cast<int>(sharer));
        shared.parts.push_back(scratch);
        scratch += piece.elements();
      }
      shared_.push_back(std::move(shared));
    }
  }
}

// Every sharer of a piece gets the parts of all others and adds them up in one order.
absl::Status GradientReduction::SumOverTensorGroup() {
  if (shared_.empty()) return absl::OkStatus();
  std::vector<Transfer> transfers;
  for (const SharedPiece& piece : shared_) {
    const int64_t bytes = piece.gradient.bytes();
    size_t part = 0;
    for (const int other : piece.others) {
      if (piece.parts[part] == piece.gradient.data) ++part;
      transfers.push_back({Transfer::Direction::kReceive, other, piece.parts[part++], bytes});
      transfers.push_back({Transfer::Direction::kSend, other, piece.gradient.data, bytes});
    }
  }
  MUSTER_ASSIGN_OR_RETURN(const Ticket ticket, tensor_group_->Exchange(transfers));
  MUSTER_RETURN_IF_ERROR(tensor_group_->Wait(ticket));
  for (const SharedPiece& piece : shared_) {
    sum_(piece.parts, piece.gradient.as<float>(), piece.gradient.elements());
  }
  return absl::OkStatus();
}

}  // namespace muster
