// One unit of a stage: embedding, attention, feed-forward or head. Units are what a stage runs, a partition balances
// and a diagnosis names.
//
// The residual stream, x (T/t, h) in the compute type, passes through the units: a unit reads it from where the unit
// before wrote it and writes it to where the next one keeps its input, so nothing is copied between them. Its gradient
// passes back through one tensor that each unit updates in place.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "common/plan/layout.h"
#include "common/plan/model_shape.h"
#include "worker/kernels/context.h"
#include "worker/model/stage_memory.h"
#include "worker/model/tensor_group.h"
#include "worker/tensor/view.h"

namespace muster {

// What the units of one stage share. T = micro_batch x sequence_length rows; t tensor ranks have T/t of them each.
struct UnitContext {
  KernelContext& kernels;
  StageMemory& memory;
  const ModelShape& shape;
  int64_t micro_batch = 0;      // sequences
  int64_t sequence_length = 0;  // tokens
  int64_t slots = 1;            // micro-batches in flight
  DType compute = DType::kF32;
  Recompute recompute = Recompute::kNone;
  int64_t loss_chunk_tokens = 0;  // rows whose logits exist at a time; 0: all of a micro-batch's
  TensorGroup* tensor = nullptr;  // null with one tensor rank

  int64_t rows() const { return micro_batch * sequence_length; }  // T
  int64_t tensor_size() const { return tensor == nullptr ? 1 : tensor->size(); }
  int64_t tensor_rank() const { return tensor == nullptr ? 0 : tensor->rank(); }
  int64_t stream_rows() const { return rows() / tensor_size(); }
};

// One micro-batch on its way through a stage.
struct MicroBatch {
  int64_t slot = 0;  // where its saved activations are
  Tensor tokens;     // (T) i32; embedding
  Tensor targets;    // (T) i32; head
  // (T) i32, of each position the first of its sequence that it may attend to; attention. Null where documents are not
  // masked from each other.
  Tensor document_starts;
  bool accumulate = false;  // backward: add to the gradients of parameters rather than write them
  float loss_scale = 1;     // backward: 1 / counted targets of the global batch
};

// Made at start by the Make functions of its header, which bind all its tensors. For the trainer's thread.
class ModelUnit {
 public:
  virtual ~ModelUnit() = default;

  // Both return the errors of the communicator: nothing that is computed can fail.
  //
  // input, output (T/t, h) compute. The embedding has no input, the head no output (its loss: head_unit.h).
  virtual absl::Status Forward(const MicroBatch& batch, const Tensor& input, const Tensor& output) = 0;

  // gradient (T/t, h) compute: of the output when called, of the input on return. `input` as in this micro-batch's
  // Forward.
  virtual absl::Status Backward(const MicroBatch& batch, const Tensor& input, const Tensor& gradient) = 0;
};

}  // namespace muster
