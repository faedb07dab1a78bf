// How tensor parallelism cuts each logical parameter (Megatron-LM: Shoeybi et al. 2019, section 3). Pure functions.
#pragma once

#include <cstdint>

#include "common/plan/model_shape.h"

namespace muster {

// The dimension that is split over the tensor group: 0 for column-parallel linears, their biases and the tables of
// tokens, 1 for row-parallel weights, -1 for what every rank of the group holds whole (norms, positions, biases added
// after a sum).
int TensorSplitDimension(const ParameterInfo& parameter);

// Elements of one rank's part. REQUIRES: `tensor` divides the split dimension.
int64_t ElementsOnTensorRank(const ParameterInfo& parameter, int64_t tensor);

// The parameters that one rank of a tensor group of this size holds of the whole model.
int64_t ParametersOnTensorRank(const ModelShape& shape, int64_t tensor);

}  // namespace muster
