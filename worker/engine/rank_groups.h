// The groups that a rank belongs to, split from the world in one order by every rank.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/plan/layout.h"
#include "common/plan/model_shape.h"
#include "worker/comm/communicator.h"

namespace muster {

struct RankGroups {
  // Ranks that share the layers of this stage and replica, in the order of the tensor group; null when there is one.
  std::unique_ptr<Communicator> tensor;
  // Replicas of this stage and place in the tensor group, in the order of replicas; null when there is one.
  std::unique_ptr<Communicator> data;
  // First and last stage of this replica and place in the tensor group; null unless a tied weight is on both.
  std::unique_ptr<Communicator> embedding;

  // Of two ranks each, the earlier stage first; null at the ends of the pipeline. Forward and backward have groups of
  // their own so that neither waits for the other.
  std::unique_ptr<Communicator> activations_in;   // from the stage before
  std::unique_ptr<Communicator> activations_out;  // to the stage after
  std::unique_ptr<Communicator> gradients_in;     // from the stage after
  std::unique_ptr<Communicator> gradients_out;    // to the stage before
};

absl::StatusOr<RankGroups> SplitGroups(Communicator& world, const ModelShape& model, const Layout& layout);

}  // namespace muster
