#include "worker/engine/pipeline.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace muster {
namespace {

// Leaves `channel` empty at an end of the model, where there is no group.
void Open(std::unique_ptr<Communicator> group, Transfer::Direction direction, const std::vector<Tensor>& slots,
          std::optional<SlottedChannel>& channel) {
  if (group != nullptr) channel.emplace(std::move(group), direction, slots);
}

MicroBatch InSlot(MicroBatch batch, int64_t slot) {
  batch.slot = slot;
  return batch;
}

}  // namespace

Pipeline::Pipeline(Stage& stage, const Layout& layout, int64_t pipeline_rank, std::vector<ChunkGroups> groups,
                   PhaseTimer& timer)
    : layout_(layout), step_passes_(StepPasses(layout, pipeline_rank)), timer_(timer), lanes_(groups.size()) {
  constexpr auto kReceive = Transfer::Direction::kReceive;
  constexpr auto kSend = Transfer::Direction::kSend;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    Chunk& chunk = stage.chunk(static_cast<int64_t>(i));
    lane.chunk = &chunk;
    Open(std::move(groups[i].activations_in), kReceive, chunk.inputs(), lane.activations_in);
    Open(std::move(groups[i].activations_out), kSend, chunk.outputs(), lane.activations_out);
    Open(std::move(groups[i].gradients_in), kReceive, chunk.gradients(), lane.gradients_in);
    Open(std::move(groups[i].gradients_out), kSend, chunk.gradients(), lane.gradients_out);
  }
}

absl::StatusOr<double> Pipeline::Train(const MicroBatchAt& at, const UnitDone& unit_done) {
  const int64_t micro_batches = layout_.accumulation_steps;
  MUSTER_RETURN_IF_ERROR(BeginForwards(micro_batches));
  for (Lane& lane : lanes_) {
    if (lane.gradients_in.has_value()) MUSTER_RETURN_IF_ERROR(lane.gradients_in->Start(0));
  }
  double loss_sum = 0;
  for (const PassAction& pass : step_passes_) {
    MUSTER_ASSIGN_OR_RETURN(const MicroBatch batch, at(pass.micro_batch));
    if (pass.forward()) {
      MUSTER_ASSIGN_OR_RETURN(const double loss, Forward(pass, batch));
      loss_sum += loss;
    } else {
      const bool last = pass.micro_batch + 1 == micro_batches;
      MUSTER_RETURN_IF_ERROR(Backward(pass, batch, last ? unit_done : UnitDone()));
    }
  }
  MUSTER_RETURN_IF_ERROR(AwaitSends());
  return loss_sum;
}

absl::StatusOr<double> Pipeline::Forward(const PassAction& pass, const MicroBatch& batch) {
  Lane& lane = LaneOf(pass);
  PhaseScope scope(timer_, Phase::kForward, pass.micro_batch);
  MUSTER_RETURN_IF_ERROR(AwaitForward(lane, pass.micro_batch));
  const MicroBatch in_slot = InSlot(batch, pass.micro_batch % lane.chunk->slots());
  MUSTER_RETURN_IF_ERROR(lane.chunk->Forward(in_slot));
  if (lane.activations_out.has_value()) MUSTER_RETURN_IF_ERROR(lane.activations_out->Start(pass.micro_batch));
  return lane.chunk->LossSum(in_slot.slot);
}

absl::Status Pipeline::Backward(const PassAction& pass, const MicroBatch& batch, const UnitDone& unit_done) {
  Lane& lane = LaneOf(pass);
  PhaseScope scope(timer_, Phase::kBackward, pass.micro_batch);
  MUSTER_RETURN_IF_ERROR(AwaitBackward(lane, pass.micro_batch));
  const std::vector<Tensor>& gradients = lane.chunk->gradients();
  MUSTER_RETURN_IF_ERROR(lane.chunk->Backward(InSlot(batch, pass.micro_batch % lane.chunk->slots()),
                                              gradients[static_cast<size_t>(pass.micro_batch) % gradients.size()],
                                              unit_done));
  if (lane.gradients_out.has_value()) MUSTER_RETURN_IF_ERROR(lane.gradients_out->Start(pass.micro_batch));
  return ReleaseInput(lane, pass.micro_batch, layout_.accumulation_steps);
}

absl::Status Pipeline::Evaluate(int64_t micro_batches, const MicroBatchAt& at, const ForwardPass& forward) {
  MUSTER_RETURN_IF_ERROR(BeginForwards(micro_batches));
  for (const PassAction& pass : EvaluationPasses(layout_, micro_batches)) {
    Lane& lane = LaneOf(pass);
    PhaseScope scope(timer_, Phase::kForward, pass.micro_batch);
    MUSTER_ASSIGN_OR_RETURN(const MicroBatch batch, at(pass.micro_batch));
    MUSTER_RETURN_IF_ERROR(AwaitForward(lane, pass.micro_batch));
    MUSTER_RETURN_IF_ERROR(
        forward(*lane.chunk, pass.micro_batch, InSlot(batch, pass.micro_batch % lane.chunk->slots())));
    if (lane.activations_out.has_value()) MUSTER_RETURN_IF_ERROR(lane.activations_out->Start(pass.micro_batch));
    MUSTER_RETURN_IF_ERROR(ReleaseInput(lane, pass.micro_batch, micro_batches));
  }
  return AwaitSends();
}

// Posts the receives that have a slot from the start.
absl::Status Pipeline::BeginForwards(int64_t micro_batches) {
  for (Lane& lane : lanes_) {
    if (!lane.activations_in.has_value()) continue;
    for (int64_t i = 0; i < std::min(lane.chunk->slots(), micro_batches); ++i) {
      MUSTER_RETURN_IF_ERROR(lane.activations_in->Start(i));
    }
  }
  return absl::OkStatus();
}

// Until the input is there and the output's slot is free.
absl::Status Pipeline::AwaitForward(Lane& lane, int64_t micro_batch) {
  PhaseScope scope(timer_, Phase::kBubble);
  if (lane.activations_in.has_value()) MUSTER_RETURN_IF_ERROR(lane.activations_in->Wait(micro_batch));
  if (lane.activations_out.has_value()) MUSTER_RETURN_IF_ERROR(lane.activations_out->Wait(micro_batch));
  return absl::OkStatus();
}

// Until the gradient is there, or its slot free where it begins. Posts the receive of the next one into the other slot,
// from which the one before this was sent.
absl::Status Pipeline::AwaitBackward(Lane& lane, int64_t micro_batch) {
  PhaseScope scope(timer_, Phase::kBubble);
  if (!lane.gradients_in.has_value()) {
    return lane.gradients_out.has_value() ? lane.gradients_out->Wait(micro_batch) : absl::OkStatus();
  }
  if (micro_batch + 1 < layout_.accumulation_steps) {
    if (lane.gradients_out.has_value()) MUSTER_RETURN_IF_ERROR(lane.gradients_out->Wait(micro_batch + 1));
    MUSTER_RETURN_IF_ERROR(lane.gradients_in->Start(micro_batch + 1));
  }
  return lane.gradients_in->Wait(micro_batch);
}

// The micro-batch is done with its slot: posts the receive of the one that has it next.
absl::Status Pipeline::ReleaseInput(Lane& lane, int64_t micro_batch, int64_t micro_batches) {
  const int64_t next = micro_batch + lane.chunk->slots();
  if (!lane.activations_in.has_value() || next >= micro_batches) return absl::OkStatus();
  return lane.activations_in->Start(next);
}

absl::Status Pipeline::AwaitSends() {
  PhaseScope scope(timer_, Phase::kBubble);
  for (Lane& lane : lanes_) {
    if (lane.activations_out.has_value()) MUSTER_RETURN_IF_ERROR(lane.activations_out->WaitAll());
    if (lane.gradients_out.has_value()) MUSTER_RETURN_IF_ERROR(lane.gradients_out->WaitAll());
  }
  return absl::OkStatus();
}

}  // namespace muster
