// The groups that a rank belongs to, split from the world in one order by every rank.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/layout.h"
#include "common/plan/model_shape.h"
#include "worker/comm/communicator.h"

namespace muster {

// Of two ranks each, that of the earlier virtual stage first; null at the ends of the model. Forward and backward have
// groups of their own so that neither waits for the other.
struct ChunkGroups {
  std::unique_ptr<Communicator> activations_in;   // from the virtual stage before
  std::unique_ptr<Communicator> activations_out;  // to the one after
  std::unique_ptr<Communicator> gradients_in;     // from the one after
  std::unique_ptr<Communicator> gradients_out;    // to the one before
};

struct RankGroups {
  // The ranks that share each layer of this stage and replica, in the order of tensor ranks; null when there is one.
  std::unique_ptr<Communicator> tensor;
  // Replicas of this stage and tensor rank, in the order of replicas; null when there is one.
  std::unique_ptr<Communicator> data;
  // First and last stage of this replica and tensor rank; null unless a tied weight is on both.
  std::unique_ptr<Communicator> embedding;
  // By chunk of this rank.
  std::vector<ChunkGroups> chunks;
};

absl::StatusOr<RankGroups> SplitGroups(Communicator& world, const ModelShape& model, const Layout& layout);

}  // namespace muster
