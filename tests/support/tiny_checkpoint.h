// Small models with weights that are a pure function of their names, and checkpoints of them, written without an
// engine.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/plan/model_shape.h"

namespace muster {

// 2 layers, 4 heads, hidden 32, 61 tokens, context 16. The llama has 2 kv heads and an odd width in its feed-forward.
ModelShape TinyGpt2(bool tied = true);
ModelShape TinyLlama(bool tied = false, bool qkv_bias = false);

// Elements first_element, first_element + 1, ... of a parameter: uniform, wide enough that logits differ by several
// nats, exact in fp32 and alike on every machine. Norm weights are about 1; every bias differs from 0.
absl::Status TinyWeights(const ParameterInfo& parameter, int64_t first_element, absl::Span<float> values);

// Writes ROOT/attempt-1/step-STEP in shards of `ranks` ranks, which hold row blocks of every parameter and its moments.
// Returns the checkpoint's directory; a failure fails the test.
std::string WriteTinyCheckpoint(const std::string& root, const ModelShape& shape, int64_t step = 3, int64_t ranks = 2);

}  // namespace muster
