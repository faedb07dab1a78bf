// Adds the two gradients of a weight that is both token embedding and head. They are accumulated apart and added once,
// embedding + head, whether both lie on one stage or on two: the sum has the same bits at every cut.
#pragma once

#include "absl/status/status.h"
#include "common/plan/reduction_plan.h"
#include "worker/comm/communicator.h"
#include "worker/kernels/context.h"
#include "worker/model/stage_memory.h"
#include "worker/tensor/view.h"

namespace muster {

class TiedEmbedding {
 public:
  // Does nothing on a rank that has no part of a tied weight. `group`: of the two stages; null where one has both.
  // `part`: what of the accumulators this rank has use for: all, or the rows that it updates.
  TiedEmbedding(StageMemory& memory, KernelContext& kernels, Communicator* group, ElementRun part);

  // REQUIRES: both accumulators are reduced over the replicas. The sum replaces this stage's accumulator (the
  // embedding's where the stage has both).
  absl::Status AddGradients();

 private:
  KernelContext& kernels_;
  Communicator* const group_;
  Tensor mine_;   // f32, the part of this stage's; empty when there is nothing to do
  Tensor other_;  // the head's, or received from the other stage
};

}  // namespace muster
