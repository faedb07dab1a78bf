// In which order a rank of the pipeline runs the passes of a step's micro-batches. Pure functions: the engine runs what
// they list, the ledger counts slots from it, and the planner's simulation (pipeline_simulation.h) runs it on paper.
//
// Without interleaving it is 1F1B (PipeDream-Flush; Narayanan et al., SC21, figure 4 top). With it each rank has
// layout.interleave chunks of the model, and micro-batches go through them in groups of layout.pipeline (the same,
// figure 4 bottom; the order is that of Megatron-LM's forward_backward_pipelining_with_interleaving).
#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/layout.h"

namespace muster {

// Forward or backward of one micro-batch through one chunk of a rank.
struct PassAction {
  enum class Kind { kForward, kBackward };
  Kind kind = Kind::kForward;
  int64_t micro_batch = 0;
  int64_t chunk = 0;

  bool forward() const { return kind == Kind::kForward; }
};

// The passes of one step on one rank of the pipeline. Within a chunk, forwards come in the order of the micro-batches
// and so do backwards. A rank that has its inputs never waits for one that waits for it, as long as sends need no
// receiver to begin. REQUIRES: with interleave > 1, pipeline divides accumulation_steps.
std::vector<PassAction> StepPasses(const Layout& layout, int64_t pipeline_rank);

// The forwards of an evaluation of so many micro-batches, of any number, in the order of training; the same on every
// rank of the pipeline.
std::vector<PassAction> EvaluationPasses(const Layout& layout, int64_t micro_batches);

// The most micro-batches that are between their forward and their backward in a chunk of a rank, from StepPasses. They
// follow one another, so that micro-batch i may keep what it saves in slot i mod this number. Without interleaving
// min(accumulation_steps, pipeline - rank).
int64_t InFlightMicroBatches(const Layout& layout, int64_t pipeline_rank, int64_t chunk);

}  // namespace muster
