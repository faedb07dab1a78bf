// One run of units on a rank, and the residual stream that passes through them.
//
// Owned by the stage, for the trainer's thread. Where activations come from and go to is the pipeline's business
// (pipeline.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/plan/layout.h"
#include "worker/engine/trace_recorder.h"
#include "worker/model/head_unit.h"
#include "worker/model/unit.h"

namespace muster {

// Called with each unit whose backward is done, on the trainer's thread.
using UnitDone = std::function<absl::Status(const Unit&)>;

class Chunk {
 public:
  // Chunk `index` of its rank. What `context` refers to and the recorder outlive the chunk.
  Chunk(const UnitContext& context, int64_t index, UnitRange units, TraceRecorder& recorder);

  // Units refer to the chunk's context.
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  // Computes in this type from now on, in the same memory: every tensor stays where it is. REQUIRES: it is as wide as
  // the one before, and no pass is under way.
  void Rebind(DType compute);

  bool has_embedding() const { return has_embedding_; }
  bool has_head() const { return head_ != nullptr; }
  // Of the tensor ranks that have the head, all of which know the loss, one counts it.
  bool counts_loss() const { return has_head() && context_.tensor_rank() == 0; }
  int64_t slots() const { return context_.slots; }

  // From input(slot), or the tokens, to output(slot), or the loss.
  absl::Status Forward(const MicroBatch& batch);
  // Sum over the counted targets of the last Forward in this slot, nats; 0 where counts_loss() is false.
  double LossSum(int64_t slot) const;
  // What the head has of it. REQUIRES: has_head().
  void CopyLosses(int64_t slot, absl::Span<float> losses) const { head_->CopyLosses(slot, losses); }
  void CopyLogits(int64_t slot, int64_t row, absl::Span<float> logits) const { head_->CopyLogits(slot, row, logits); }
  // `gradient`, one of gradients(): of the output when called (anything, with a head), of the input on return.
  // `unit_done` may be empty.
  absl::Status Backward(const MicroBatch& batch, const Tensor& gradient, const UnitDone& unit_done);

  // Runs Forward and says which unit is the first whose output is not finite.
  absl::StatusOr<std::optional<Unit>> FirstNonFiniteUnit(const MicroBatch& batch);

  // By slot, (T/t, h) compute with t tensor ranks. Without an embedding, or a head, respectively.
  const std::vector<Tensor>& inputs() const { return stream_.front(); }
  const std::vector<Tensor>& outputs() const { return stream_.back(); }
  // Micro-batch i uses gradients()[i mod size]; (T/t, h) compute.
  const std::vector<Tensor>& gradients() const { return gradients_; }

 private:
  void Bind();

  UnitContext context_;
  TraceRecorder& recorder_;
  const int64_t index_;
  const bool has_embedding_;
  std::vector<Unit> descriptions_;
  std::vector<std::string> names_;  // of the units, for the timeline
  std::vector<std::unique_ptr<ModelUnit>> units_;
  HeadUnit* head_ = nullptr;                 // the last of units_, where this is the model's last run
  std::vector<std::vector<Tensor>> stream_;  // by unit and slot: its input; one more for the chunk's output
  std::vector<Tensor> gradients_;
};

}  // namespace muster
