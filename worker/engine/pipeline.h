// Runs a stage's passes in the order of its schedule and moves activations and gradients between stages, so that
// transfers overlap with compute: receives are posted as soon as their slot is free, sends are waited for only before
// their slot is used again.
//
// Owned by the trainer, for its thread. Every stage of a replica makes the same calls.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "worker/engine/phase_timer.h"
#include "worker/engine/rank_groups.h"
#include "worker/engine/slotted_channel.h"
#include "worker/engine/stage.h"

namespace muster {

class Pipeline {
 public:
  // Takes the pipeline's groups out of `groups`. `stage` and `timer` outlive the pipeline.
  Pipeline(Stage& stage, RankGroups& groups, PhaseTimer& timer);

  // Micro-batch i of a pass, from 0; the pipeline sets its slot.
  using MicroBatchAt = std::function<absl::StatusOr<MicroBatch>(int64_t micro_batch)>;

  // Forward and backward of one step (1F1B). Returns this rank's sum of losses, nats; 0 without a head.
  absl::StatusOr<double> Train(int64_t micro_batches, const MicroBatchAt& at);

  // What evaluation does with each micro-batch once its input is there: runs the stage's forward.
  using ForwardPass = std::function<absl::Status(int64_t micro_batch, const MicroBatch& batch)>;

  // Forwards only, in order, in the same buffers and shapes.
  absl::Status Evaluate(int64_t micro_batches, const MicroBatchAt& at, const ForwardPass& forward);

 private:
  absl::Status BeginForwards(int64_t micro_batches);
  absl::Status AwaitForward(int64_t micro_batch);
  absl::Status AwaitBackward(int64_t micro_batch, int64_t micro_batches);
  absl::Status ReleaseInput(int64_t micro_batch, int64_t micro_batches);
  absl::Status AwaitSends();
  int64_t Slot(int64_t micro_batch) const { return micro_batch % stage_.slots(); }

  Stage& stage_;
  PhaseTimer& timer_;
  std::optional<SlottedChannel> activations_in_;   // into the stage's inputs
  std::optional<SlottedChannel> activations_out_;  // from its outputs
  std::optional<SlottedChannel> gradients_in_;     // both in the stage's gradients
  std::optional<SlottedChannel> gradients_out_;
};

}  // namespace muster
