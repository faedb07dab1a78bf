#include "common/formats/hugging_face_export.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/formats/hugging_face_config.h"
#include "common/formats/hugging_face_model.h"
#include "common/formats/hugging_face_names.h"
#include "common/formats/stored_floats.h"
#include "common/plan/layout_check.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

constexpr char kGenerationConfig[] = "generation_config.json";

// One tensor of the file and where it comes from.
struct ExportedPart {
  ParameterInfo parameter;
  HuggingFacePart part;
};

std::vector<ExportedPart> PartsOf(const ModelShape& shape) {
  std::vector<ExportedPart> parts;
  for (const ParameterInfo& parameter : Parameters(shape)) {
    for (HuggingFacePart& part : HuggingFaceParts(shape, parameter)) parts.push_back({parameter, std::move(part)});
  }
  return parts;
}

// (rows, columns) -> (columns, rows).
std::vector<float> Transposed(const std::vector<float>& values, int64_t rows, int64_t columns) {
  std::vector<float> result(values.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      result[static_cast<size_t>(column * rows + row)] = values[static_cast<size_t>(row * columns + column)];
    }
  }
  return result;
}

absl::Status FillPart(CheckpointReader& checkpoint, const ExportedPart& exported, StoredType type,
                      absl::Span<std::byte> data) {
  const HuggingFacePart& part = exported.part;
  LocalTensor tensor{.name = exported.parameter.name,
                     .kind = StateKind::kMaster,
                     .type = StoredType::kF32,
                     .global_dims = exported.parameter.dims,
                     .box = {std::vector<int64_t>(part.dims.size(), 0), exported.parameter.dims}};
  tensor.box.offset[0] = part.first_row;
  tensor.box.dims[0] = part.rows;
  std::vector<float> values(static_cast<size_t>(tensor.box.elements()));
  tensor.data = values.data();
  MUSTER_RETURN_IF_ERROR(checkpoint.Read(tensor));
  if (part.transposed) values = Transposed(values, part.rows, tensor.box.dims[1]);
  if (StoreFloats(type, values, data)) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat(exported.parameter.name, " has a value beyond ", StoredTypeName(type), "; export as fp32 or bf16"));
}

absl::StatusOr<int64_t> WriteWeights(CheckpointReader& checkpoint, const std::string& path, StoredType type) {
  const ModelShape& shape = checkpoint.manifest().model;
  const std::vector<ExportedPart> parts = PartsOf(shape);
  std::vector<TensorToWrite> tensors;
  for (const ExportedPart& exported : parts) {
    const absl::string_view prefix = exported.part.prefixed ? HuggingFacePrefix(shape.family) : "";
    tensors.push_back({absl::StrCat(prefix, exported.part.name), type, exported.part.dims, nullptr});
  }
  MUSTER_ASSIGN_OR_RETURN(
      const WrittenFile written,
      WriteSafetensors(path, tensors, {{"format", "pt"}}, [&](size_t i, absl::Span<std::byte> data) {
        return FillPart(checkpoint, parts[i], type, data);
      }));
  return written.bytes;
}

std::string GenerationConfig(int64_t end_of_document) {
  nlohmann::ordered_json json = {{"do_sample", true}};
  if (end_of_document >= 0) json["bos_token_id"] = json["eos_token_id"] = end_of_document;
  return json.dump(2) + "\n";
}

absl::StatusOr<int64_t> WriteAll(CheckpointReader& checkpoint, const std::string& directory,
                                 const HuggingFaceExportOptions& options) {
  MUSTER_RETURN_IF_ERROR(MakeDirectories(directory));
  MUSTER_ASSIGN_OR_RETURN(const int64_t bytes,
                          WriteWeights(checkpoint, absl::StrCat(directory, "/", kHuggingFaceWeights), options.type));
  std::map<std::string, std::string> files = options.files;
  files[kGenerationConfig] = GenerationConfig(options.end_of_document);
  files[kHuggingFaceConfig] =
      SerializeHuggingFaceConfig(checkpoint.manifest().model, {options.type, options.end_of_document});
  for (const auto& [name, content] : files) {
    MUSTER_RETURN_IF_ERROR(WriteFileDurably(absl::StrCat(directory, "/", name), content));
  }
  return bytes;
}

// Into a directory that is there, a file at a time, config.json last: a reader that comes between finds the old model's
// configuration with weights that it refuses, or the new one's.
absl::Status MoveInto(const std::string& from, const std::string& directory) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(from));
  std::stable_partition(names.begin(), names.end(), [](const std::string& name) { return name != kHuggingFaceConfig; });
  for (const std::string& name : names) {
    MUSTER_RETURN_IF_ERROR(RenameDurably(absl::StrCat(from, "/", name), absl::StrCat(directory, "/", name)));
  }
  return RemoveTree(from, DirectoryOf(from));
}

}  // namespace

absl::StatusOr<int64_t> ExportHuggingFace(CheckpointReader& checkpoint, const std::string& directory_in,
                                          const HuggingFaceExportOptions& options) {
  // RemoveTree wants a path without "..", and renaming one without "/" at its end.
  const std::string absolute = std::filesystem::absolute(directory_in).lexically_normal().string();
  const std::string directory(absl::StripSuffix(absolute, "/"));
  const std::vector<Problem> problems = CheckModelShape(checkpoint.manifest().model);
  if (!problems.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kManifestFileName, ": ", problems[0].field, ": ", problems[0].message));
  }
  bool occupied = false;
  if (PathExists(directory)) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
    occupied = !names.empty();
  }
  if (occupied && !options.force) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory,
                     " is there and is not empty; name another directory, or give --force to replace the "
                     "files of a model in it"));
  }
  // Beside it, so that a rename suffices.
  const std::string unfinished = absl::StrCat(directory, ".tmp");
  MUSTER_RETURN_IF_ERROR(RemoveTree(unfinished, DirectoryOf(unfinished)));
  absl::StatusOr<int64_t> bytes = WriteAll(checkpoint, unfinished, options);
  absl::Status status = bytes.status();
  if (status.ok()) status = occupied ? MoveInto(unfinished, directory) : RenameDurably(unfinished, directory);
  if (status.ok()) return bytes;
  RemoveTree(unfinished, DirectoryOf(unfinished)).IgnoreError();
  return status;
}

}  // namespace muster
