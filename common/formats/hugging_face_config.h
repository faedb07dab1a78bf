// The config.json of a Hugging Face model, as transformers' GPT2Config, LlamaConfig, MistralConfig and Qwen2Config have
// it, to and from a ModelShape. Pure functions; any thread.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/formats/safetensors.h"
#include "common/plan/model_shape.h"

namespace muster {

inline constexpr char kHuggingFaceConfig[] = "config.json";

// Fields that are left out have the defaults of transformers. INVALID_ARGUMENT naming file and field: for sizes that
// are missing, and for a model that computes something else than ours (another model_type, activation, rope_scaling, a
// sliding window that is shorter than the context, ...).
absl::StatusOr<ModelShape> ParseHuggingFaceConfig(absl::string_view json, absl::string_view file);

// What a configuration says beside the shape.
struct HuggingFaceConfigExtras {
  StoredType type = StoredType::kF32;  // of the weights
  int64_t end_of_document = -1;        // token; -1: not known
};

// "gpt2", "llama", or "qwen2" for a llama with biases on query, key and value.
std::string SerializeHuggingFaceConfig(const ModelShape& shape, const HuggingFaceConfigExtras& extras);

// Whether a model of the shape `stored` can be used as one of the shape `wanted`: all fields are equal, but the context
// of a llama may be shorter, as it has no table of positions. INVALID_ARGUMENT naming the field, as "model.hidden", and
// `file`.
absl::Status CheckSameShape(const ModelShape& wanted, const ModelShape& stored, absl::string_view file);

}  // namespace muster
