#include "common/formats/checkpoint_manifest.h"

#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/crc32.h"
#include "common/base/status_macros.h"
#include "common/formats/json_fields.h"
#include "common/formats/model_json.h"

namespace muster {

using nlohmann::ordered_json;

namespace {

constexpr std::array<std::pair<StateKind, absl::string_view>, 3> kKinds = {
    {{StateKind::kMaster, "master"},
     {StateKind::kFirstMoment, "first_moment"},
     {StateKind::kSecondMoment, "second_moment"}}};

std::string Dump(const ordered_json& json) { return json.dump(1, ' ', false, ordered_json::error_handler_t::replace); }

// ---- to JSON -----------------------------------------------------------------------------------------------------

ordered_json ToJson(const CheckpointId& id) { return {{"attempt", id.attempt}, {"step", id.step}}; }

ordered_json ToJson(const CheckpointFile& file) {
  return {{"name", file.name}, {"bytes", file.bytes}, {"crc32", file.crc32}, {"block_crc32s", file.block_crc32s}};
}

ordered_json ToJson(const StepHistory& history) {
  return {{"skipped_steps", history.skipped_steps},
          {"spikes_in_a_row", history.spikes_in_a_row},
          {"recent_losses", history.recent_losses}};
}

ordered_json ToJson(const std::vector<CheckpointTensor>& tensors) {
  ordered_json list = ordered_json::array();
  for (const CheckpointTensor& tensor : tensors) {
    ordered_json boxes = ordered_json::array();
    for (const StoredBox& stored : tensor.boxes) {
      boxes.push_back(ordered_json{{"file", stored.file}, {"offset", stored.box.offset}, {"dims", stored.box.dims}});
    }
    list.push_back(ordered_json{{"name", tensor.name},
                                {"kind", std::string(StateKindName(tensor.kind))},
                                {"dtype", std::string(StoredTypeName(tensor.type))},
                                {"dims", tensor.dims},
                                {"boxes", std::move(boxes)}});
  }
  return list;
}

// ---- from JSON ---------------------------------------------------------------------------------------------------

absl::StatusOr<int64_t> IntegerAt(const JsonField& object, absl::string_view key) {
  MUSTER_ASSIGN_OR_RETURN(const JsonField field, object.Member(key));
  return field.Integer();
}

absl::StatusOr<std::string> StringAt(const JsonField& object, absl::string_view key) {
  MUSTER_ASSIGN_OR_RETURN(const JsonField field, object.Member(key));
  return field.String();
}

absl::StatusOr<std::vector<int64_t>> IntegersAt(const JsonField& object, absl::string_view key) {
  MUSTER_ASSIGN_OR_RETURN(const JsonField field, object.Member(key));
  return field.Integers();
}

absl::StatusOr<CheckpointId> ParseId(const JsonField& object) {
  CheckpointId id;
  MUSTER_ASSIGN_OR_RETURN(id.attempt, IntegerAt(object, "attempt"));
  MUSTER_ASSIGN_OR_RETURN(id.step, IntegerAt(object, "step"));
  return id;
}

absl::StatusOr<uint32_t> ParseCrc32(const JsonField& field) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t crc32, field.Integer());
  if (crc32 > int64_t{0xffffffff}) return field.Error("expected an integer of 32 bits");
  return static_cast<uint32_t>(crc32);
}

absl::StatusOr<CheckpointFile> ParseFile(const JsonField& object) {
  MUSTER_RETURN_IF_ERROR(object.CheckKeys({"name", "bytes", "crc32", "block_crc32s"}));
  CheckpointFile file;
  MUSTER_ASSIGN_OR_RETURN(const JsonField name, object.Member("name"));
  MUSTER_ASSIGN_OR_RETURN(file.name, name.String());
  // A manifest must not send a reader outside its directory.
  if (file.name.empty() || absl::StrContains(file.name, "/") || file.name[0] == '.') {
    return name.Error("expected the plain name of a file in this directory");
  }
  MUSTER_ASSIGN_OR_RETURN(file.bytes, IntegerAt(object, "bytes"));
  MUSTER_ASSIGN_OR_RETURN(const JsonField crc_field, object.Member("crc32"));
  MUSTER_ASSIGN_OR_RETURN(file.crc32, ParseCrc32(crc_field));
  MUSTER_ASSIGN_OR_RETURN(const JsonField blocks_field, object.Member("block_crc32s"));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<JsonField> blocks, blocks_field.Elements());
  for (const JsonField& block : blocks) {
    MUSTER_ASSIGN_OR_RETURN(const uint32_t crc32, ParseCrc32(block));
    file.block_crc32s.push_back(crc32);
  }
  const int64_t expected = (file.bytes + kChecksumBlockBytes - 1) / kChecksumBlockBytes;
  if (static_cast<int64_t>(file.block_crc32s.size()) != expected) {
    return blocks_field.Error(absl::StrCat("expected ", expected, " checksums for ", file.bytes, " bytes"));
  }
  return file;
}

absl::StatusOr<StoredBox> ParseBox(const JsonField& object, size_t rank) {
  MUSTER_RETURN_IF_ERROR(object.CheckKeys({"file", "offset", "dims"}));
  StoredBox stored;
  MUSTER_ASSIGN_OR_RETURN(stored.file, IntegerAt(object, "file"));
  MUSTER_ASSIGN_OR_RETURN(stored.box.offset, IntegersAt(object, "offset"));
  MUSTER_ASSIGN_OR_RETURN(stored.box.dims, IntegersAt(object, "dims"));
  if (stored.box.offset.size() != rank || stored.box.dims.size() != rank) {
    return object.Error(absl::StrCat("expected offset and dims of ", rank, " dimensions"));
  }
  return stored;
}

absl::StatusOr<CheckpointTensor> ParseTensor(const JsonField& object) {
  MUSTER_RETURN_IF_ERROR(object.CheckKeys({"name", "kind", "dtype", "dims", "boxes"}));
  CheckpointTensor tensor;
  MUSTER_ASSIGN_OR_RETURN(tensor.name, StringAt(object, "name"));
  MUSTER_ASSIGN_OR_RETURN(const JsonField kind_field, object.Member("kind"));
  MUSTER_ASSIGN_OR_RETURN(const std::string kind_name, kind_field.String());
  bool known = false;
  for (const auto& kind : kKinds) {
    if (kind.second != kind_name) continue;
    tensor.kind = kind.first;
    known = true;
  }
  if (!known) return kind_field.Error(absl::StrCat("unknown kind \"", kind_name, "\""));
  MUSTER_ASSIGN_OR_RETURN(const JsonField dtype, object.Member("dtype"));
  MUSTER_ASSIGN_OR_RETURN(const std::string type_name, dtype.String());
  absl::StatusOr<StoredType> type = ParseStoredType(type_name);
  if (!type.ok()) return dtype.Error(type.status().message());
  tensor.type = *type;
  MUSTER_ASSIGN_OR_RETURN(const JsonField dims, object.Member("dims"));
  MUSTER_ASSIGN_OR_RETURN(tensor.dims, dims.Integers());
  if (!StoredBytes(tensor.type, tensor.dims).ok()) return dims.Error("the size overflows");
  MUSTER_ASSIGN_OR_RETURN(const JsonField boxes_field, object.Member("boxes"));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<JsonField> boxes, boxes_field.Elements());
  for (const JsonField& field : boxes) {
    MUSTER_ASSIGN_OR_RETURN(StoredBox box, ParseBox(field, tensor.dims.size()));
    tensor.boxes.push_back(std::move(box));
  }
  return tensor;
}

absl::StatusOr<std::vector<CheckpointTensor>> ParseTensors(const JsonField& object) {
  MUSTER_ASSIGN_OR_RETURN(const JsonField list, object.Member("tensors"));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<JsonField> fields, list.Elements());
  std::vector<CheckpointTensor> tensors;
  for (const JsonField& field : fields) {
    MUSTER_ASSIGN_OR_RETURN(CheckpointTensor tensor, ParseTensor(field));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

absl::StatusOr<StepHistory> ParseHistory(const JsonField& root) {
  MUSTER_ASSIGN_OR_RETURN(const JsonField field, root.Member("history"));
  StepHistory history;
  MUSTER_ASSIGN_OR_RETURN(history.skipped_steps, IntegerAt(field, "skipped_steps"));
  MUSTER_ASSIGN_OR_RETURN(history.spikes_in_a_row, IntegerAt(field, "spikes_in_a_row"));
  MUSTER_ASSIGN_OR_RETURN(const JsonField losses_field, field.Member("recent_losses"));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<JsonField> losses, losses_field.Elements());
  for (const JsonField& loss : losses) {
    MUSTER_ASSIGN_OR_RETURN(const double value, loss.Number());
    history.recent_losses.push_back(value);
  }
  return history;
}

absl::Status ParseOptionalParts(const JsonField& root, CheckpointManifest& manifest) {
  MUSTER_ASSIGN_OR_RETURN(const std::optional<JsonField> parent, root.OptionalMember("parent"));
  if (parent.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(manifest.parent, ParseId(*parent));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::optional<JsonField> scaler, root.OptionalMember("loss_scaler"));
  if (scaler.has_value()) {
    LossScalerState state;
    MUSTER_ASSIGN_OR_RETURN(const JsonField scale, scaler->Member("scale"));
    MUSTER_ASSIGN_OR_RETURN(state.scale, scale.Number());
    MUSTER_ASSIGN_OR_RETURN(state.good_steps, IntegerAt(*scaler, "good_steps"));
    MUSTER_ASSIGN_OR_RETURN(state.hysteresis, IntegerAt(*scaler, "hysteresis"));
    MUSTER_ASSIGN_OR_RETURN(const JsonField fell_back, scaler->Member("fell_back"));
    MUSTER_ASSIGN_OR_RETURN(state.fell_back, fell_back.Boolean());
    manifest.loss_scaler = state;
  }
  MUSTER_ASSIGN_OR_RETURN(const JsonField fingerprint, root.Member("numerics_fingerprint"));
  MUSTER_ASSIGN_OR_RETURN(manifest.numerics_fingerprint, fingerprint.Strings());
  return absl::OkStatus();
}

}  // namespace

absl::string_view StateKindName(StateKind kind) { return kKinds[static_cast<size_t>(kind)].second; }

std::string SerializeShardRecord(const ShardRecord& record) {
  return Dump({{"file", ToJson(record.file)}, {"tensors", ToJson(record.tensors)}});
}

absl::StatusOr<ShardRecord> ParseShardRecord(absl::string_view json, absl::string_view file) {
  MUSTER_ASSIGN_OR_RETURN(const nlohmann::json parsed, ParseJson(json, file));
  const JsonField root(parsed, std::string(file), "");
  MUSTER_RETURN_IF_ERROR(root.CheckKeys({"file", "tensors"}));
  ShardRecord record;
  MUSTER_ASSIGN_OR_RETURN(const JsonField file_field, root.Member("file"));
  MUSTER_ASSIGN_OR_RETURN(record.file, ParseFile(file_field));
  MUSTER_ASSIGN_OR_RETURN(record.tensors, ParseTensors(root));
  for (const CheckpointTensor& tensor : record.tensors) {
    for (const StoredBox& box : tensor.boxes) {
      if (box.file != 0) return root.Error("a record has one file, and a box names another");
    }
  }
  return record;
}

std::string SerializeManifest(const CheckpointManifest& manifest) {
  ordered_json files = ordered_json::array();
  for (const CheckpointFile& file : manifest.files) files.push_back(ToJson(file));
  ordered_json root = {{"format_version", kCheckpointFormatVersion},
                       {"job_id", manifest.job_id},
                       {"attempt", manifest.id.attempt},
                       {"step", manifest.id.step},
                       {"parent", nullptr},
                       {"consumed_samples", manifest.consumed_samples},
                       {"loss_scaler", nullptr},
                       {"history", ToJson(manifest.history)},
                       {"numerics_fingerprint", manifest.numerics_fingerprint},
                       {"model", ModelShapeToJson(manifest.model)},
                       {"spec", manifest.spec_json},
                       {"files", std::move(files)},
                       {"tensors", ToJson(manifest.tensors)}};
  if (manifest.parent.has_value()) root["parent"] = ToJson(*manifest.parent);
  if (manifest.loss_scaler.has_value()) {
    root["loss_scaler"] = {{"scale", manifest.loss_scaler->scale},
                           {"good_steps", manifest.loss_scaler->good_steps},
                           {"hysteresis", manifest.loss_scaler->hysteresis},
                           {"fell_back", manifest.loss_scaler->fell_back}};
  }
  return Dump(root) + "\n";
}

absl::StatusOr<CheckpointManifest> ParseManifest(absl::string_view json, absl::string_view file) {
  MUSTER_ASSIGN_OR_RETURN(const nlohmann::json parsed, ParseJson(json, file));
  const JsonField root(parsed, std::string(file), "");
  MUSTER_ASSIGN_OR_RETURN(const JsonField version_field, root.Member("format_version"));
  MUSTER_ASSIGN_OR_RETURN(const int64_t version, version_field.Integer());
  if (version != kCheckpointFormatVersion) {
    return version_field.Error(absl::StrCat("version ", version, " is not known here; this version of Muster reads ",
                                            kCheckpointFormatVersion));
  }
  MUSTER_RETURN_IF_ERROR(
      root.CheckKeys({"format_version", "job_id", "attempt", "step", "parent", "consumed_samples", "loss_scaler",
                      "history", "numerics_fingerprint", "model", "spec", "files", "tensors"}));
  CheckpointManifest manifest;
  MUSTER_ASSIGN_OR_RETURN(manifest.job_id, StringAt(root, "job_id"));
  MUSTER_ASSIGN_OR_RETURN(manifest.id, ParseId(root));
  MUSTER_ASSIGN_OR_RETURN(manifest.consumed_samples, IntegerAt(root, "consumed_samples"));
  MUSTER_ASSIGN_OR_RETURN(const JsonField model, root.Member("model"));
  MUSTER_ASSIGN_OR_RETURN(manifest.model, ParseModelShape(model));
  MUSTER_ASSIGN_OR_RETURN(manifest.spec_json, StringAt(root, "spec"));
  MUSTER_ASSIGN_OR_RETURN(manifest.history, ParseHistory(root));
  MUSTER_RETURN_IF_ERROR(ParseOptionalParts(root, manifest));
  MUSTER_ASSIGN_OR_RETURN(const JsonField files_field, root.Member("files"));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<JsonField> files, files_field.Elements());
  for (const JsonField& field : files) {
    MUSTER_ASSIGN_OR_RETURN(CheckpointFile parsed_file, ParseFile(field));
    manifest.files.push_back(std::move(parsed_file));
  }
  MUSTER_ASSIGN_OR_RETURN(manifest.tensors, ParseTensors(root));
  if (absl::Status status = CheckCoverage(manifest); !status.ok()) return root.Error(status.message());
  return manifest;
}

}  // namespace muster
