#include "common/formats/hugging_face_names.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "common/base/check.h"

namespace muster {
namespace {

enum class Rows { kAll, kQuery, kKeyValue, kFfn };

// Without "layer.N." and ".weight" or ".bias". Several of one name follow one another in its rows.
struct Rule {
  absl::string_view ours;
  absl::string_view theirs;
  Rows rows = Rows::kAll;
  bool transposed = false;  // its weight
};

constexpr Rule kGpt2[] = {{"embedding.token", "wte"},
                          {"embedding.position", "wpe"},
                          {"attention.norm", "ln_1"},
                          {"attention.qkv", "attn.c_attn", Rows::kAll, true},
                          {"attention.projection", "attn.c_proj", Rows::kAll, true},
                          {"ffn.norm", "ln_2"},
                          {"ffn.up", "mlp.c_fc", Rows::kAll, true},
                          {"ffn.down", "mlp.c_proj", Rows::kAll, true},
                          {"head.norm", "ln_f"}};
constexpr Rule kLlama[] = {{"embedding.token", "embed_tokens"},
                           {"attention.norm", "input_layernorm"},
                           {"attention.qkv", "self_attn.q_proj", Rows::kQuery},
                           {"attention.qkv", "self_attn.k_proj", Rows::kKeyValue},
                           {"attention.qkv", "self_attn.v_proj", Rows::kKeyValue},
                           {"attention.projection", "self_attn.o_proj"},
                           {"ffn.norm", "post_attention_layernorm"},
                           {"ffn.gate_up", "mlp.gate_proj", Rows::kFfn},
                           {"ffn.gate_up", "mlp.up_proj", Rows::kFfn},
                           {"ffn.down", "mlp.down_proj"},
                           {"head.norm", "norm"}};

absl::Span<const Rule> RulesOf(ModelFamily family) {
  return family == ModelFamily::kGpt2 ? absl::Span<const Rule>(kGpt2) : absl::Span<const Rule>(kLlama);
}

int64_t RowsOf(const ModelShape& shape, Rows rows, const ParameterInfo& parameter) {
  switch (rows) {
    case Rows::kAll:
      return parameter.dims[0];
    case Rows::kQuery:
      return shape.heads * shape.head_dim();
    case Rows::kKeyValue:
      return shape.kv_heads * shape.head_dim();
    case Rows::kFfn:
      return shape.ffn;
  }
  return 0;
}

// "layer.3.ffn.up.weight" -> {"3", "ffn.up", ".weight"}.
struct OurName {
  absl::string_view layer;
  absl::string_view rule;
  absl::string_view kind;
};

OurName Split(absl::string_view name) {
  OurName split;
  split.kind = name.substr(name.rfind('.'));
  name.remove_suffix(split.kind.size());
  if (absl::ConsumePrefix(&name, "layer.")) {
    split.layer = name.substr(0, name.find('.'));
    name.remove_prefix(split.layer.size() + 1);
  }
  split.rule = name;
  return split;
}

}  // namespace

std::vector<HuggingFacePart> HuggingFaceParts(const ModelShape& shape, const ParameterInfo& parameter) {
  if (parameter.name == "head.weight") {
    return {{kHuggingFaceHead, parameter.dims, 0, parameter.dims[0], /*transposed=*/false, /*prefixed=*/false}};
  }
  const OurName name = Split(parameter.name);
  const absl::string_view layers = shape.family == ModelFamily::kGpt2 ? "h." : "layers.";
  std::vector<HuggingFacePart> parts;
  int64_t row = 0;
  for (const Rule& rule : RulesOf(shape.family)) {
    if (rule.ours != name.rule) continue;
    HuggingFacePart part;
    if (!name.layer.empty()) part.name = absl::StrCat(layers, name.layer, ".");
    absl::StrAppend(&part.name, rule.theirs, name.kind);
    part.first_row = row;
    part.rows = RowsOf(shape, rule.rows, parameter);
    part.dims = parameter.dims;
    part.dims[0] = part.rows;
    part.transposed = rule.transposed && part.dims.size() == 2;
    if (part.transposed) std::swap(part.dims[0], part.dims[1]);
    row += part.rows;
    parts.push_back(std::move(part));
  }
  MUSTER_CHECK(row == parameter.dims[0], parameter.name, " has ", parameter.dims[0], " rows, its parts ", row);
  return parts;
}

absl::string_view HuggingFacePrefix(ModelFamily family) {
  return family == ModelFamily::kGpt2 ? "transformer." : "model.";
}

bool IsHuggingFaceBuffer(ModelFamily family, absl::string_view name) {
  if (family == ModelFamily::kGpt2) {
    return absl::EndsWith(name, ".attn.bias") || absl::EndsWith(name, ".attn.masked_bias");
  }
  return absl::EndsWith(name, "rotary_emb.inv_freq");
}

}  // namespace muster
