// How the gradients of one rank are cut for their reduction over the data-parallel replicas: into buckets that follow
// one another as backward finishes them, so that one travels while the next is computed. The ledger sizes the scratch
// by it and the engine (worker/engine/gradient_reduction.h) runs it.
//
// Pure functions of plain data; the replicas of a rank get the same plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/plan/layout.h"
#include "common/plan/model_shape.h"
#include "common/plan/parameter_shard.h"

namespace muster {

// One f32 accumulator of a rank.
struct GradientInfo {
  std::string entry;  // of the ledger: "gradient/layer.0.attention.qkv.weight"
  ParameterInfo parameter;
  ParameterShard shard;
  int64_t unit = 0;  // whose backward is the last to add to it; the head for its own accumulator of a tied weight
};

// Those of the rank with these chunks (layout.h) and this place in the tensor group, in the order in which backward
// finishes them: by unit, the last one first.
std::vector<GradientInfo> GradientsOf(const ModelShape& shape, const std::vector<UnitRange>& chunks, int64_t tensor,
                                      int64_t tensor_rank);

// A run of the elements of an accumulator.
struct ElementRun {
  int64_t first = 0;
  int64_t elements = 0;
};

// The parts of an accumulator that the replicas sum at the same time, by replica: each a part of the replica's rows
// (ReplicaRows) of one piece. Some may be empty.
struct ReductionSegment {
  size_t gradient = 0;  // index of the accumulator, in the order given
  std::vector<ElementRun> runs;
};

struct ReductionBucket {
  int64_t unit = 0;  // ready when the last micro-batch's backward of this unit is done
  std::vector<ReductionSegment> segments;
};

struct ReductionPlan {
  // In the order in which they become ready: of one unit each.
  std::vector<ReductionBucket> during_backward;
  // Of the pieces whose gradients are first summed over the tensor group (ShardPiece::partial_gradients), when backward
  // is done. `unit` says nothing.
  std::vector<ReductionBucket> after_backward;
};

// Each element of each piece is in one run of one bucket. No replica sums more than `part_elements` of a bucket.
// REQUIRES: part_elements is at least the elements of the longest row.
ReductionPlan PlanReduction(const std::vector<GradientInfo>& gradients, int64_t data, int64_t part_elements);

// The part_elements of a layout: what a replica sums of the attention or feed-forward unit with the most gradients, so
// that a whole unit travels while the next one is computed. Embedding and head, which may be many times larger, are
// cut. Equal on every rank.
int64_t ReductionPartElements(const ModelShape& shape, const Layout& layout);

// Two buckets' parts from the other replicas, f32, in bytes; 0 without any.
int64_t ReductionScratchBytes(const ModelShape& shape, const Layout& layout);

}  // namespace muster
