#include "common/formats/model_json.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr char kGpt2[] = "gpt2";
constexpr char kLlama[] = "llama";

// The whole numbers of a shape, under their names.
constexpr std::pair<const char*, int64_t ModelShape::*> kCounts[] = {
    {"layers", &ModelShape::layers},     {"hidden", &ModelShape::hidden}, {"heads", &ModelShape::heads},
    {"kv_heads", &ModelShape::kv_heads}, {"ffn", &ModelShape::ffn},       {"vocab", &ModelShape::vocab},
    {"context", &ModelShape::context}};
constexpr std::pair<const char*, bool ModelShape::*> kFlags[] = {{"tied", &ModelShape::tied},
                                                                 {"qkv_bias", &ModelShape::qkv_bias}};
constexpr std::pair<const char*, double ModelShape::*> kNumbers[] = {{"norm_eps", &ModelShape::norm_eps},
                                                                     {"rope_base", &ModelShape::rope_base}};

}  // namespace

nlohmann::ordered_json ModelShapeToJson(const ModelShape& shape) {
  nlohmann::ordered_json json = {{"family", shape.family == ModelFamily::kGpt2 ? kGpt2 : kLlama}};
  for (const auto& [name, member] : kCounts) json[name] = shape.*member;
  for (const auto& [name, member] : kFlags) json[name] = shape.*member;
  for (const auto& [name, member] : kNumbers) json[name] = shape.*member;
  return json;
}

absl::StatusOr<ModelShape> ParseModelShape(const JsonField& field) {
  MUSTER_RETURN_IF_ERROR(field.CheckKeys({"family", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "context",
                                          "tied", "qkv_bias", "norm_eps", "rope_base"}));
  ModelShape shape;
  MUSTER_ASSIGN_OR_RETURN(const JsonField family_field, field.Member("family"));
  MUSTER_ASSIGN_OR_RETURN(const std::string family, family_field.String());
  if (family != kGpt2 && family != kLlama) return family_field.Error(absl::StrCat("unknown family \"", family, "\""));
  shape.family = family == kGpt2 ? ModelFamily::kGpt2 : ModelFamily::kLlama;
  for (const auto& [name, member] : kCounts) {
    MUSTER_ASSIGN_OR_RETURN(const JsonField value, field.Member(name));
    MUSTER_ASSIGN_OR_RETURN(shape.*member, value.Integer());
  }
  for (const auto& [name, member] : kFlags) {
    MUSTER_ASSIGN_OR_RETURN(const JsonField value, field.Member(name));
    MUSTER_ASSIGN_OR_RETURN(shape.*member, value.Boolean());
  }
  for (const auto& [name, member] : kNumbers) {
    MUSTER_ASSIGN_OR_RETURN(const JsonField value, field.Member(name));
    MUSTER_ASSIGN_OR_RETURN(shape.*member, value.Number());
  }
  return shape;
}

}  // namespace muster
