// The weights that training begins with: a pure function of (seed, tensor, element), so that every cut of a model
// begins alike.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "common/plan/model_shape.h"

namespace muster {

// Fills `values` with elements first_element, first_element + 1, ... (row-major) of the parameter.
//
// As GPT-2 does (Radford et al. 2019, section 2.3, and its published code): matrices and embeddings normal with
// deviation 0.02, positions too (0.02 as in nanoGPT; GPT-2's code has 0.01); the two projections that write to the
// residual stream divided by sqrt(2 layers); biases 0, norm weights 1. LLaMA's begin alike (0.02 is also the default of
// transformers' LlamaConfig; Megatron-LM scales the same two projections in every family).
void InitialWeights(const ModelShape& shape, uint64_t seed, const ParameterInfo& parameter, int64_t first_element,
                    absl::Span<float> values);

}  // namespace muster
