// Continues a text. Free functions; one thread a model.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/formats/tokenizer.h"
#include "worker/generate/forward_model.h"
#include "worker/generate/sampler.h"

namespace muster {

struct GenerateOptions {
  SamplerOptions sampler;
  int64_t tokens = 100;  // new ones at the most; an end of document ends the text before
};

// Tokens of a window that is large enough for the text, and no larger than the model's context.
int64_t WindowFor(const ModelShape& shape, int64_t prompt_tokens, int64_t new_tokens);

// Calls `print` with the text as it comes: new text only, in pieces that may end within a UTF-8 character. An empty
// prompt begins a document. A text longer than the window goes on from its last tokens. The tokens generated.
absl::StatusOr<int64_t> Generate(ForwardModel& model, const Tokenizer& tokenizer, absl::Span<const int32_t> prompt,
                                 const GenerateOptions& options, absl::FunctionRef<void(absl::string_view)> print);

}  // namespace muster
