// Runs a rank's passes in the order of the schedule (common/plan/schedule.h) and moves activations and gradients
// between virtual stages, so that transfers overlap with compute: receives are posted as soon as their slot is free,
// sends are waited for only before their slot is used again.
//
// Owned by the trainer, for its thread. Every rank of a replica makes the same calls.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/plan/layout.h"
#include "common/plan/schedule.h"
#include "worker/engine/phase_timer.h"
#include "worker/engine/rank_groups.h"
#include "worker/engine/slotted_channel.h"
#include "worker/engine/stage.h"

namespace muster {

class Pipeline {
 public:
  // `groups` by chunk, as SplitGroups (rank_groups.h) made them. `stage` and `timer` outlive the pipeline.
  Pipeline(Stage& stage, const Layout& layout, int64_t pipeline_rank, std::vector<ChunkGroups> groups,
           PhaseTimer& timer);

  // Micro-batch i of a pass, from 0; the pipeline sets its slot.
  using MicroBatchAt = std::function<absl::StatusOr<MicroBatch>(int64_t micro_batch)>;

  // Forward and backward of one step. Returns this rank's sum of losses, nats; 0 without a head. `unit_done` is called
  // with each unit as soon as its gradients are those of all micro-batches; it may be empty.
  absl::StatusOr<double> Train(const MicroBatchAt& at, const UnitDone& unit_done);

  // What evaluation does with each micro-batch once a chunk's input is there: runs the chunk's forward.
  using ForwardPass = std::function<absl::Status(Chunk& chunk, int64_t micro_batch, const MicroBatch& batch)>;

  // Forwards only, in the same buffers and shapes. Each chunk takes the micro-batches in order.
  absl::Status Evaluate(int64_t micro_batches, const MicroBatchAt& at, const ForwardPass& forward);

 private:
  // A chunk with its ends of the edges to its neighbours; none at the ends of the model.
  struct Lane {
    Chunk* chunk = nullptr;
    std::optional<SlottedChannel> activations_in;   // into the chunk's inputs
    std::optional<SlottedChannel> activations_out;  // from its outputs
    std::optional<SlottedChannel> gradients_in;     // both in the chunk's gradients
    std::optional<SlottedChannel> gradients_out;
  };

  Lane& LaneOf(const PassAction& pass) { return lanes_[static_cast<size_t>(pass.chunk)]; }
  absl::StatusOr<double> Forward(const PassAction& pass, const MicroBatch& batch);
  absl::Status Backward(const PassAction& pass, const MicroBatch& batch, const UnitDone& unit_done);
  absl::Status BeginForwards(int64_t micro_batches);
  absl::Status AwaitForward(Lane& lane, int64_t micro_batch);
  absl::Status AwaitBackward(Lane& lane, int64_t micro_batch);
  absl::Status ReleaseInput(Lane& lane, int64_t micro_batch, int64_t micro_batches);
  absl::Status AwaitSends();

  const Layout layout_;
  const std::vector<PassAction> step_passes_;
  PhaseTimer& timer_;
  std::vector<Lane> lanes_;  // by chunk
};

}  // namespace muster
