// Which token comes next: a pure function of logits, options and the token's place in the text.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace muster {

struct SamplerOptions {
  // Logits are divided by it before the softmax: 1 draws what the model learned, less is bolder. 0: always the
  // likeliest token.
  double temperature = 1;
  // Only the k likeliest tokens can be drawn; 0: all.
  int64_t top_k = 0;
  // Equal seeds give equal texts, for equal logits.
  uint64_t seed = 0;
};

// `position` of the new token in the text. Of equal logits the lower token counts as the likelier. REQUIRES: logits.
int32_t SampleToken(absl::Span<const float> logits, const SamplerOptions& options, int64_t position);

}  // namespace muster
