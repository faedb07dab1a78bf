#include "worker/engine/pipeline.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/plan/schedule.h"

namespace muster {
namespace {

std::optional<SlottedChannel> MakeChannel(std::unique_ptr<Communicator> group, Transfer::Direction direction,
                                          const std::vector<Tensor>& slots) {
  if (group == nullptr) return std::nullopt;
  return std::optional<SlottedChannel>(std::in_place, std::move(group), direction, slots);
}

}  // namespace

Pipeline::Pipeline(Stage& stage, RankGroups& groups, PhaseTimer& timer)
    : stage_(stage),
      timer_(timer),
      activations_in_(MakeChannel(std::move(groups.activations_in), Transfer::Direction::kReceive, stage.inputs())),
      activations_out_(MakeChannel(std::move(groups.activations_out), Transfer::Direction::kSend, stage.outputs())),
      gradients_in_(MakeChannel(std::move(groups.gradients_in), Transfer::Direction::kReceive, stage.gradients())),
      gradients_out_(MakeChannel(std::move(groups.gradients_out), Transfer::Direction::kSend, stage.gradients())) {}

absl::StatusOr<double> Pipeline::Train(int64_t micro_batches, const MicroBatchAt& at) {
  MUSTER_RETURN_IF_ERROR(BeginForwards(micro_batches));
  if (gradients_in_.has_value()) MUSTER_RETURN_IF_ERROR(gradients_in_->Start(0));
  double loss_sum = 0;
  for (const PassAction& action : OneForwardOneBackward(micro_batches, std::min(stage_.slots(), micro_batches))) {
    const int64_t i = action.micro_batch;
    MUSTER_ASSIGN_OR_RETURN(MicroBatch batch, at(i));
    batch.slot = Slot(i);
    if (action.kind == PassAction::Kind::kForward) {
      PhaseScope scope(timer_, Phase::kForward, i);
      MUSTER_RETURN_IF_ERROR(AwaitForward(i));
      MUSTER_RETURN_IF_ERROR(stage_.Forward(batch));
      loss_sum += stage_.LossSum(batch.slot);
      if (activations_out_.has_value()) MUSTER_RETURN_IF_ERROR(activations_out_->Start(i));
    } else {
      PhaseScope scope(timer_, Phase::kBackward, i);
      MUSTER_RETURN_IF_ERROR(AwaitBackward(i, micro_batches));
      MUSTER_RETURN_IF_ERROR(
          stage_.Backward(batch, stage_.gradients()[static_cast<size_t>(i) % stage_.gradients().size()]));
      if (gradients_out_.has_value()) MUSTER_RETURN_IF_ERROR(gradients_out_->Start(i));
      MUSTER_RETURN_IF_ERROR(ReleaseInput(i, micro_batches));
    }
  }
  MUSTER_RETURN_IF_ERROR(AwaitSends());
  return loss_sum;
}

absl::Status Pipeline::Evaluate(int64_t micro_batches, const MicroBatchAt& at, const ForwardPass& forward) {
  MUSTER_RETURN_IF_ERROR(BeginForwards(micro_batches));
  for (int64_t i = 0; i < micro_batches; ++i) {
    PhaseScope scope(timer_, Phase::kForward, i);
    MUSTER_ASSIGN_OR_RETURN(MicroBatch batch, at(i));
    batch.slot = Slot(i);
    MUSTER_RETURN_IF_ERROR(AwaitForward(i));
    MUSTER_RETURN_IF_ERROR(forward(i, batch));
    if (activations_out_.has_value()) MUSTER_RETURN_IF_ERROR(activations_out_->Start(i));
    MUSTER_RETURN_IF_ERROR(ReleaseInput(i, micro_batches));
  }
  return AwaitSends();
}

// Posts the receives that have a slot from the start.
absl::Status Pipeline::BeginForwards(int64_t micro_batches) {
  if (!activations_in_.has_value()) return absl::OkStatus();
  for (int64_t i = 0; i < std::min(stage_.slots(), micro_batches); ++i) {
    MUSTER_RETURN_IF_ERROR(activations_in_->Start(i));
  }
  return absl::OkStatus();
}

// Until the input is there and the output's slot is free.
absl::Status Pipeline::AwaitForward(int64_t micro_batch) {
  PhaseScope scope(timer_, Phase::kBubble);
  if (activations_in_.has_value()) MUSTER_RETURN_IF_ERROR(activations_in_->Wait(micro_batch));
  if (activations_out_.has_value()) MUSTER_RETURN_IF_ERROR(activations_out_->Wait(micro_batch));
  return absl::OkStatus();
}

// Until the gradient is there, or its slot free where it begins. Posts the receive of the next one into the other slot,
// from which the one before this was sent.
absl::Status Pipeline::AwaitBackward(int64_t micro_batch, int64_t micro_batches) {
  PhaseScope scope(timer_, Phase::kBubble);
  if (!gradients_in_.has_value())
    return gradients_out_.has_value() ? gradients_out_->Wait(micro_batch) : absl::OkStatus();
  if (micro_batch + 1 < micro_batches) {
    if (gradients_out_.has_value()) MUSTER_RETURN_IF_ERROR(gradients_out_->Wait(micro_batch + 1));
    MUSTER_RETURN_IF_ERROR(gradients_in_->Start(micro_batch + 1));
  }
  return gradients_in_->Wait(micro_batch);
}

// The micro-batch is done with its slot: posts the receive of the one that has it next.
absl::Status Pipeline::ReleaseInput(int64_t micro_batch, int64_t micro_batches) {
  const int64_t next = micro_batch + stage_.slots();
  if (!activations_in_.has_value() || next >= micro_batches) return absl::OkStatus();
  return activations_in_->Start(next);
}

absl::Status Pipeline::AwaitSends() {
  PhaseScope scope(timer_, Phase::kBubble);
  if (activations_out_.has_value()) MUSTER_RETURN_IF_ERROR(activations_out_->WaitAll());
  if (gradients_out_.has_value()) MUSTER_RETURN_IF_ERROR(gradients_out_->WaitAll());
  return absl::OkStatus();
}

}  // namespace muster
