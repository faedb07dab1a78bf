// The parameters of a rank with their gradients and optimizer states, cut as reduction, clipping, optimizer and
// checkpoint see them: into boxes of the logical tensors (common/plan/parameter_shard.h).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/formats/checkpoint_manifest.h"
#include "common/plan/layout.h"
#include "common/plan/model_shape.h"
#include "common/plan/parameter_shard.h"
#include "worker/comm/communicator.h"
#include "worker/kernels/context.h"
#include "worker/model/stage_memory.h"
#include "worker/tensor/view.h"

namespace muster {

// A box of a logical tensor with its state, dense: n elements each.
struct StateBlock {
  Box box;
  Tensor value;     // compute
  Tensor gradient;  // f32; empty where the parameter is not trained, as the moments are
  Tensor master;    // f32; the value itself in fp32
  Tensor first;     // f32, average of gradients
  Tensor second;    // f32, average of their squares
};

struct StageParameter {
  ParameterInfo info;
  size_t model_index = 0;  // in Parameters(shape)
  ParameterShard shard;
  Tensor value;     // compute, all that this rank holds, flat
  Tensor gradient;  // f32, the same; empty where it is not trained

  // What this rank updates, and sets at the start: every piece, or with a sharded optimizer its replica's rows of them.
  std::vector<StateBlock> updated;

  // What this rank answers for, of all ranks alone: what it adds to the gradients' norm and writes to checkpoints. Its
  // replica's rows of the pieces of which it is the first in the tensor group to hold them; nothing of the last stage's
  // copy of a tied weight.
  std::vector<StateBlock> answered_for;
};

struct StageParametersOptions {
  Layout layout;
  std::vector<UnitRange> chunks;  // of this rank, layout.h
  RankCoordinate coordinate;
  DType compute = DType::kF32;
};

// In the order of the model.
std::vector<StageParameter> BindStageParameters(StageMemory& memory, const ModelShape& shape,
                                                const StageParametersOptions& options);

// Fills values with elements first_element, first_element + 1, ... of a logical tensor, row-major.
using ValuesOf =
    std::function<absl::Status(const ParameterInfo& parameter, int64_t first_element, absl::Span<float> values)>;

// Sets masters from `values_of`, a piece at a time, and moments to 0. Values are to be published
// (RankEngine::PublishWeights).
absl::Status InitializeParameters(KernelContext& kernels, const std::vector<StageParameter>& parameters,
                                  const ValuesOf& values_of);

// Sets values from masters, where they differ.
void CastMastersToValues(KernelContext& kernels, const std::vector<StageParameter>& parameters);

// Gives the values of this replica's rows to the other replicas, `group`, and gets theirs.
absl::Status GatherReplicaRows(Communicator& group, const std::vector<StageParameter>& parameters);

// Calls `visit` for each run of a box, a tensor of one or two dimensions, that is contiguous in the logical tensor too:
// its first element there, its first element in the box, and how many.
absl::Status ForEachRun(const Box& box, absl::Span<const int64_t> global_dims,
                        absl::FunctionRef<absl::Status(int64_t in_tensor, int64_t in_box, int64_t elements)> visit);

}  // namespace muster
