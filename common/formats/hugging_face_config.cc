#include "common/formats/hugging_face_config.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/formats/json_fields.h"
#include "common/plan/layout_check.h"

namespace muster {
namespace {

// Reads optional fields of one object; the first error stays.
class Fields {
 public:
  explicit Fields(const JsonField& root) : root_(root) {}

  int64_t Count(absl::string_view key, int64_t otherwise) {
    return Get<int64_t>(key, otherwise, [](const JsonField& field) { return field.Integer(); });
  }
  double Number(absl::string_view key, double otherwise) {
    return Get<double>(key, otherwise, [](const JsonField& field) { return field.Number(); });
  }
  bool Flag(absl::string_view key, bool otherwise) {
    return Get<bool>(key, otherwise, [](const JsonField& field) { return field.Boolean(); });
  }
  std::string Text(absl::string_view key, absl::string_view otherwise) {
    return Get<std::string>(key, std::string(otherwise), [](const JsonField& field) { return field.String(); });
  }
  int64_t RequiredCount(absl::string_view key) {
    const absl::StatusOr<JsonField> field = root_.Member(key);
    Keep(field.status());
    return field.ok() ? Count(key, 0) : 0;
  }
  std::optional<JsonField> Object(absl::string_view key) {
    absl::StatusOr<std::optional<JsonField>> member = root_.OptionalMember(key);
    Keep(member.status());
    return member.ok() ? *member : std::nullopt;
  }

  // The model differs from ours.
  void Refuse(bool refused, absl::string_view key, absl::string_view what) {
    if (!refused) return;
    const absl::StatusOr<JsonField> field = root_.Member(key);
    Keep((field.ok() ? *field : root_).Error(absl::StrCat(what, " is not implemented")));
  }

  const absl::Status& status() const { return status_; }

 private:
  template <typename Value, typename Read>
  Value Get(absl::string_view key, Value otherwise, Read read) {
    const std::optional<JsonField> field = Object(key);
    if (!field.has_value()) return otherwise;
    absl::StatusOr<Value> value = read(*field);
    Keep(value.status());
    return value.ok() ? *std::move(value) : otherwise;
  }
  void Keep(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }

  const JsonField& root_;
  absl::Status status_;
};

ModelShape Gpt2Shape(Fields& fields) {
  ModelShape shape;
  shape.family = ModelFamily::kGpt2;
  shape.layers = fields.RequiredCount("n_layer");
  shape.hidden = fields.RequiredCount("n_embd");
  shape.heads = fields.RequiredCount("n_head");
  shape.kv_heads = shape.heads;
  shape.vocab = fields.RequiredCount("vocab_size");
  shape.context = fields.Count("n_positions", 1024);
  shape.ffn = fields.Count("n_inner", 4 * shape.hidden);
  shape.norm_eps = fields.Number("layer_norm_epsilon", 1e-5);
  shape.tied = fields.Flag("tie_word_embeddings", true);
  const std::string activation = fields.Text("activation_function", "gelu_new");
  fields.Refuse(activation != "gelu_new" && activation != "gelu_pytorch_tanh", "activation_function",
                absl::StrCat("\"", activation, "\" (gelu_new is)"));
  fields.Refuse(!fields.Flag("scale_attn_weights", true), "scale_attn_weights", "attention without scaling");
  fields.Refuse(fields.Flag("scale_attn_by_inverse_layer_idx", false), "scale_attn_by_inverse_layer_idx",
                "scaling attention by the layer");
  fields.Refuse(fields.Flag("add_cross_attention", false), "add_cross_attention", "cross attention");
  return shape;
}

// transformers 4 has rope_theta and rope_scaling, transformers 5 has both in rope_parameters.
void ReadRope(Fields& fields, ModelShape& shape) {
  shape.rope_base = fields.Number("rope_theta", 10000);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const std::optional<JsonField> object = fields.Object(key);
    if (!object.has_value()) continue;
    Fields rope(*object);
    shape.rope_base = rope.Number("rope_theta", shape.rope_base);
    const std::string type = rope.Text("rope_type", rope.Text("type", "default"));
    fields.Refuse(!rope.status().ok() || type != "default", key, absl::StrCat("scaled RoPE (\"", type, "\")"));
  }
  fields.Refuse(fields.Number("partial_rotary_factor", 1) != 1, "partial_rotary_factor", "RoPE on a part of each head");
}

ModelShape LlamaShape(const std::string& type, Fields& fields) {
  ModelShape shape;
  shape.family = ModelFamily::kLlama;
  shape.layers = fields.RequiredCount("num_hidden_layers");
  shape.hidden = fields.RequiredCount("hidden_size");
  shape.heads = fields.RequiredCount("num_attention_heads");
  const int64_t kv_heads = type == "mistral" ? 8 : type == "qwen2" ? 32 : shape.heads;
  shape.kv_heads = fields.Count("num_key_value_heads", kv_heads);
  shape.ffn = fields.RequiredCount("intermediate_size");
  shape.vocab = fields.RequiredCount("vocab_size");
  shape.context = fields.RequiredCount("max_position_embeddings");
  shape.norm_eps = fields.Number("rms_norm_eps", 1e-6);
  shape.tied = fields.Flag("tie_word_embeddings", false);
  shape.qkv_bias = type == "qwen2";
  ReadRope(fields, shape);
  const std::string activation = fields.Text("hidden_act", "silu");
  fields.Refuse(activation != "silu", "hidden_act", absl::StrCat("\"", activation, "\" (silu is)"));
  fields.Refuse(type == "llama" && fields.Flag("attention_bias", false), "attention_bias",
                "a bias on the attention's output");
  fields.Refuse(fields.Flag("mlp_bias", false), "mlp_bias", "a bias in the feed-forward block");
  const int64_t heads = std::max<int64_t>(shape.heads, 1);
  const int64_t head_dim = fields.Count("head_dim", shape.hidden / heads);
  fields.Refuse(head_dim * shape.heads != shape.hidden, "head_dim",
                absl::StrCat(shape.heads, " heads of ", head_dim, " in a width of ", shape.hidden));
  const bool has_window = type == "mistral" || (type == "qwen2" && fields.Flag("use_sliding_window", false));
  fields.Refuse(has_window && fields.Count("sliding_window", shape.context) < shape.context, "sliding_window",
                "a sliding window shorter than max_position_embeddings");
  return shape;
}

nlohmann::ordered_json Gpt2Json(const ModelShape& shape) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"vocab_size", shape.vocab},
          {"n_positions", shape.context},
          {"n_ctx", shape.context},
          {"n_embd", shape.hidden},
          {"n_layer", shape.layers},
          {"n_head", shape.heads},
          {"n_inner", shape.ffn},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", shape.norm_eps},
          // Muster trains without dropout.
          {"resid_pdrop", 0.0},
          {"embd_pdrop", 0.0},
          {"attn_pdrop", 0.0}};
}

nlohmann::ordered_json LlamaJson(const ModelShape& shape) {
  nlohmann::ordered_json json = {{"architectures", {shape.qkv_bias ? "Qwen2ForCausalLM" : "LlamaForCausalLM"}},
                                 {"model_type", shape.qkv_bias ? "qwen2" : "llama"},
                                 {"vocab_size", shape.vocab},
                                 {"max_position_embeddings", shape.context},
                                 {"hidden_size", shape.hidden},
                                 {"intermediate_size", shape.ffn},
                                 {"num_hidden_layers", shape.layers},
                                 {"num_attention_heads", shape.heads},
                                 {"num_key_value_heads", shape.kv_heads},
                                 {"head_dim", shape.head_dim()},
                                 {"hidden_act", "silu"},
                                 {"rms_norm_eps", shape.norm_eps},
                                 {"rope_theta", shape.rope_base},
                                 {"attention_dropout", 0.0}};
  if (shape.qkv_bias) {
    json["use_sliding_window"] = false;
  } else {
    json["attention_bias"] = false;
    json["mlp_bias"] = false;
  }
  return json;
}

const char* TypeName(StoredType type) {
  return type == StoredType::kBF16 ? "bfloat16" : type == StoredType::kF16 ? "float16" : "float32";
}

}  // namespace

absl::StatusOr<ModelShape> ParseHuggingFaceConfig(absl::string_view json, absl::string_view file) {
  MUSTER_ASSIGN_OR_RETURN(const nlohmann::json parsed, ParseJson(json, file));
  const JsonField root(parsed, std::string(file), "");
  MUSTER_ASSIGN_OR_RETURN(const JsonField type_field, root.Member("model_type"));
  MUSTER_ASSIGN_OR_RETURN(const std::string type, type_field.String());
  const bool llama = type == "llama" || type == "mistral" || type == "qwen2";
  if (type != "gpt2" && !llama) {
    return type_field.Error(absl::StrCat("\"", type, "\" is no model of Muster's: gpt2, llama, mistral, qwen2 are"));
  }
  Fields fields(root);
  const ModelShape shape = llama ? LlamaShape(type, fields) : Gpt2Shape(fields);
  MUSTER_RETURN_IF_ERROR(fields.status());
  const std::vector<Problem> problems = CheckModelShape(shape);
  if (!problems.empty()) {
    return root.Error(absl::StrCat("read as ", problems[0].field, ": ", problems[0].message));
  }
  return shape;
}

std::string SerializeHuggingFaceConfig(const ModelShape& shape, const HuggingFaceConfigExtras& extras) {
  nlohmann::ordered_json json = shape.family == ModelFamily::kGpt2 ? Gpt2Json(shape) : LlamaJson(shape);
  json["tie_word_embeddings"] = shape.tied;
  json["torch_dtype"] = TypeName(extras.type);
  json["bos_token_id"] = nullptr;
  json["eos_token_id"] = nullptr;
  if (extras.end_of_document >= 0) json["bos_token_id"] = json["eos_token_id"] = extras.end_of_document;
  json["use_cache"] = true;
  return json.dump(2) + "\n";
}

absl::Status CheckSameShape(const ModelShape& wanted, const ModelShape& stored, absl::string_view file) {
  const auto differ = [file](const char* field, const auto& ours, const auto& theirs) {
    return absl::InvalidArgumentError(absl::StrCat("model.", field, ": the job says ", ours, ", ", file, " says ",
                                                   theirs, "; they must be the same"));
  };
  const auto family = [](const ModelShape& shape) { return shape.family == ModelFamily::kGpt2 ? "gpt2" : "llama"; };
  if (wanted.family != stored.family) return differ("family", family(wanted), family(stored));
  constexpr std::pair<const char*, int64_t ModelShape::*> kCounts[] = {
      {"layers", &ModelShape::layers},     {"hidden", &ModelShape::hidden}, {"heads", &ModelShape::heads},
      {"kv_heads", &ModelShape::kv_heads}, {"ffn", &ModelShape::ffn},       {"vocab", &ModelShape::vocab}};
  for (const auto& [name, member] : kCounts) {
    if (wanted.*member != stored.*member) return differ(name, wanted.*member, stored.*member);
  }
  const bool shorter = wanted.family == ModelFamily::kLlama && wanted.context < stored.context;
  if (wanted.context != stored.context && !shorter) return differ("context", wanted.context, stored.context);
  const auto word = [](bool flag) { return flag ? "true" : "false"; };
  if (wanted.tied != stored.tied) return differ("tied", word(wanted.tied), word(stored.tied));
  if (wanted.norm_eps != stored.norm_eps) return differ("norm_eps", wanted.norm_eps, stored.norm_eps);
  if (wanted.family == ModelFamily::kGpt2) return absl::OkStatus();
  if (wanted.qkv_bias != stored.qkv_bias) return differ("qkv_bias", word(wanted.qkv_bias), word(stored.qkv_bias));
  if (wanted.rope_base != stored.rope_base) return differ("rope_base", wanted.rope_base, stored.rope_base);
  return absl::OkStatus();
}

}  // namespace muster
