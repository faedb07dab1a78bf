// Makes of the gradients that a rank has accumulated those of the global batch: while backward still runs for what is
// independent of other ranks of the tensor group, and afterwards for the rest.
//
// The order of a sum is fixed: first over the ranks of the tensor group that hold the same piece, then over the
// replicas, each in rank order, and last a tied weight's two accumulators.
//
// Owned by the rank's engine, for the trainer's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/plan/layout.h"
#include "common/plan/reduction_plan.h"
#include "worker/comm/gradient_reducer.h"
#include "worker/engine/phase_timer.h"
#include "worker/engine/rank_groups.h"
#include "worker/engine/tied_embedding.h"
#include "worker/kernels/context.h"
#include "worker/model/stage_memory.h"

namespace muster {

// Adds by the back-end's kernels, in blocks that stay in a second-level cache.
SumParts SumWithKernels(KernelContext& kernels);

class GradientReduction {
 public:
  // Which gradients: those of a rank of this layout that runs these chunks.
  struct Share {
    const ModelShape& shape;
    const Layout& layout;
    std::vector<UnitRange> chunks;
    RankCoordinate coordinate;
  };

  // All but `share` outlive it. `timer` is told of the time in which nothing but communication goes on.
  GradientReduction(const Share& share, StageMemory& memory, KernelContext& kernels, const RankGroups& groups,
                    PhaseTimer& timer);

  // The backward of the last micro-batch is done with this unit of the model, and with all later ones of this rank:
  // their gradients begin to travel. Errors are the communicator's.
  absl::Status GradientsReady(int64_t unit);

  // REQUIRES: backward is done. On return the gradients are those of the global batch: all of them, or with a sharded
  // optimizer those of this replica's rows.
  absl::Status Finish();

 private:
  // A piece whose gradient is a part, one of each sharer.
  struct SharedPiece {
    Tensor gradient;            // f32, flat
    std::vector<int> others;    // the other sharers, in the order of the tensor group
    std::vector<float*> parts;  // by sharer, this rank's in its place
  };

  void BindBuckets(const ReductionPlan& plan);
  GradientBucket BucketOf(const ReductionBucket& bucket) const;
  void BindSharedPieces(const std::vector<GradientInfo>& gradients, int64_t tensor_rank, StageMemory& memory);
  absl::Status SumOverTensorGroup();

  PhaseTimer& timer_;
  Communicator* const tensor_group_;  // null when there is one rank
  const SumParts sum_;
  std::vector<Tensor> accumulators_;  // f32, flat, in the order of GradientsOf

  std::optional<GradientReducer> reducer_;  // none when there is one replica
  std::vector<int64_t> units_;              // of the buckets reduced during backward
  std::vector<GradientBucket> during_backward_;
  std::vector<GradientBucket> after_backward_;
  size_t started_ = 0;  // of during_backward_, in this step

  std::vector<SharedPiece> shared_;
  TiedEmbedding tied_embedding_;
};

}  // namespace muster
