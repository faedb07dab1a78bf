// The parameters of a stage with their gradients and optimizer states, as flat tensors: what reduction, clipping,
// optimizer and checkpoint walk over.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/plan/layout.h"
#include "common/plan/model_shape.h"
#include "worker/kernels/context.h"
#include "worker/model/stage_memory.h"
#include "worker/tensor/view.h"

namespace muster {

// n elements each.
struct StageParameter {
  ParameterInfo info;
  size_t model_index = 0;  // in Parameters(shape)
  bool owned = true;       // false for the last stage's copy of a tied weight: not counted, not saved, updated alike
  Tensor value;            // compute
  Tensor gradient;         // f32
  Tensor master;           // f32; the value itself in fp32
  Tensor first;            // f32, average of gradients
  Tensor second;           // f32, average of their squares
};

// In the order of the model.
std::vector<StageParameter> BindStageParameters(StageMemory& memory, const ModelShape& shape, UnitRange units,
                                                DType compute);

// Sets master and value from `values_of`, piece by piece, and the moments to 0.
absl::Status InitializeParameters(
    KernelContext& kernels, const std::vector<StageParameter>& parameters,
    const std::function<absl::Status(const ParameterInfo&, int64_t first_element, absl::Span<float>)>& values_of);

// Sets values from masters, where they differ.
void CastMastersToValues(KernelContext& kernels, const std::vector<StageParameter>& parameters);

}  // namespace muster
