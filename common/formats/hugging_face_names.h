// Which tensors of a Hugging Face model hold a logical parameter of common/plan/model_shape.h, and how.
//
// Names and orientation are those of transformers' GPT2LMHeadModel, LlamaForCausalLM, MistralForCausalLM and
// Qwen2ForCausalLM (modeling_*.py there). GPT-2's linears are Conv1D, stored (in, out). LLaMA's query, key and value,
// and its gate and up, are tensors of their own. Both use the rotate-half layout of RoPE, so no rows are permuted.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/plan/model_shape.h"

namespace muster {

// One tensor there: rows [first_row, first_row + rows) of the logical parameter, whose vectors are rows of one element.
struct HuggingFacePart {
  std::string name;           // without the base model's prefix: "h.0.attn.c_attn.weight"
  std::vector<int64_t> dims;  // as stored there
  int64_t first_row = 0;
  int64_t rows = 0;
  bool transposed = false;  // stored (columns, rows)
  bool prefixed = true;     // below HuggingFacePrefix where names have it; the head never is
};

// In the order of the rows, together the whole parameter.
std::vector<HuggingFacePart> HuggingFaceParts(const ModelShape& shape, const ParameterInfo& parameter);

// What stands before the names of a whole model, and not before those of its base model alone: "transformer.",
// "model.".
absl::string_view HuggingFacePrefix(ModelFamily family);

// The head's weight; a tied model's may be stored a second time under this name.
inline constexpr char kHuggingFaceHead[] = "lm_head.weight";

// A tensor of the module that is no parameter and follows from the configuration, such as the causal mask
// ("h.0.attn.bias") of GPT-2 and the frequencies ("layers.0.self_attn.rotary_emb.inv_freq") of LLaMA. `name` without
// the prefix.
bool IsHuggingFaceBuffer(ModelFamily family, absl::string_view name);

}  // namespace muster
