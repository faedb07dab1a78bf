#include "worker/generate/generate.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/status_macros.h"

namespace muster {

int64_t WindowFor(const ModelShape& shape, int64_t prompt_tokens, int64_t new_tokens) {
  return std::clamp<int64_t>(prompt_tokens + new_tokens, 1, shape.context);
}

absl::StatusOr<int64_t> Generate(ForwardModel& model, const Tokenizer& tokenizer, absl::Span<const int32_t> prompt,
                                 const GenerateOptions& options, absl::FunctionRef<void(absl::string_view)> print) {
  std::vector<int32_t> text(prompt.begin(), prompt.end());
  if (text.empty()) text.push_back(tokenizer.end_of_document());  // what stands before every document but the first
  const size_t begin = text.size();
  std::vector<float> logits(static_cast<size_t>(model.shape().vocab));
  size_t printed = 0;
  for (int64_t i = 0; i < options.tokens; ++i) {
    const size_t count = std::min(text.size(), static_cast<size_t>(model.window()));
    MUSTER_RETURN_IF_ERROR(model.Forward(absl::MakeConstSpan(text).last(count)));
    model.CopyLogits(static_cast<int64_t>(count) - 1, absl::MakeSpan(logits));
    const int32_t token = SampleToken(logits, options.sampler, static_cast<int64_t>(text.size()));
    if (token == tokenizer.end_of_document()) return i;
    text.push_back(token);
    // All of it again: how a token reads may depend on those before.
    MUSTER_ASSIGN_OR_RETURN(const std::string so_far, tokenizer.Decode(absl::MakeConstSpan(text).subspan(begin)));
    if (so_far.size() > printed) print(absl::string_view(so_far).substr(printed));
    printed = std::max(printed, so_far.size());
  }
  return options.tokens;
}

}  // namespace muster
