#include "common/formats/hugging_face_model.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/formats/hugging_face_config.h"
#include "common/formats/json_fields.h"
#include "common/formats/stored_floats.h"
#include "common/plan/ledger.h"

namespace muster {
namespace {

absl::Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

std::string Quoted(absl::string_view name) { return absl::StrCat("tensor \"", name, "\""); }

std::string ShapeOf(const std::vector<int64_t>& dims) { return absl::StrCat("[", absl::StrJoin(dims, ", "), "]"); }

// The elements [first, first + count) of a part, row-major in its logical orientation (rows, columns).
void ReadPart(const StoredTensor& tensor, const HuggingFacePart& part, int64_t first, absl::Span<float> values) {
  if (!part.transposed) return LoadFloats(tensor.type, tensor.data, first, 1, values);
  const int64_t columns = part.dims[0];
  for (size_t done = 0; done < values.size();) {
    const int64_t element = first + static_cast<int64_t>(done);
    const int64_t row = element / columns;
    const int64_t column = element % columns;
    const size_t run = std::min(values.size() - done, static_cast<size_t>(columns - column));
    LoadFloats(tensor.type, tensor.data, column * part.rows + row, part.rows, values.subspan(done, run));
    done += run;
  }
}

}  // namespace

absl::StatusOr<ModelShape> ReadHuggingFaceShape(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kHuggingFaceConfig);
  MUSTER_ASSIGN_OR_RETURN(const std::string json, ReadFile(path));
  return ParseHuggingFaceConfig(json, path);
}

absl::StatusOr<HuggingFaceModel> HuggingFaceModel::Open(const std::string& directory, const ModelShape& shape) {
  MUSTER_ASSIGN_OR_RETURN(const ModelShape stored, ReadHuggingFaceShape(directory));
  MUSTER_RETURN_IF_ERROR(CheckSameShape(shape, stored, absl::StrCat(directory, "/", kHuggingFaceConfig)));
  HuggingFaceModel model(directory, shape);
  MUSTER_RETURN_IF_ERROR(model.OpenFiles());
  MUSTER_RETURN_IF_ERROR(model.TakePrefixOff());
  MUSTER_RETURN_IF_ERROR(model.CheckTensors());
  return model;
}

absl::Status HuggingFaceModel::OpenFiles() {
  if (PathExists(absl::StrCat(directory_, "/", kHuggingFaceWeights))) return AddFile(kHuggingFaceWeights);
  const std::string index_path = absl::StrCat(directory_, "/", kHuggingFaceIndex);
  if (PathExists(index_path)) return OpenShards(index_path);
  return absl::NotFoundError(absl::StrCat(directory_, " has neither ", kHuggingFaceWeights, " nor ", kHuggingFaceIndex,
                                          "; other forms of weights are not read: write them with transformers' "
                                          "save_pretrained(DIR, safe_serialization=True)"));
}

// {"weight_map": {TENSOR: FILE}}; what else the index has says nothing about where tensors are.
absl::Status HuggingFaceModel::OpenShards(const std::string& index_path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string json, ReadFile(index_path));
  MUSTER_ASSIGN_OR_RETURN(const nlohmann::json parsed, ParseJson(json, index_path));
  const JsonField root(parsed, index_path, "");
  MUSTER_ASSIGN_OR_RETURN(const JsonField map_field, root.Member("weight_map"));
  using FileOfTensor = std::map<std::string, std::string>;
  MUSTER_ASSIGN_OR_RETURN(const FileOfTensor file_of, map_field.Strings());
  std::set<std::string> names;
  for (const auto& [tensor, file] : file_of) {
    if (file.empty() || absl::StrContains(file, "/") || file[0] == '.') {
      return map_field.Error(absl::StrCat("\"", file, "\" is not the plain name of a file in this directory"));
    }
    names.insert(file);
  }
  for (const std::string& name : names) MUSTER_RETURN_IF_ERROR(AddFile(name));
  for (const auto& [tensor, file] : file_of) {
    const std::string path = absl::StrCat(directory_, "/", file);
    const bool there = std::any_of(files_.begin(), files_.end(), [&, name = tensor](const auto& opened) {
      return opened->file().path() == path && opened->tensors().count(name) > 0;
    });
    if (!there) return Invalid(absl::StrCat(path, " has no ", Quoted(tensor), ", which ", index_path, " places there"));
  }
  for (const auto& file : files_) {
    for (const auto& tensor : file->tensors()) {
      if (file_of.count(tensor.first) > 0) continue;
      return Invalid(absl::StrCat(file->file().path(), ": ", Quoted(tensor.first), " is not listed in ", index_path));
    }
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceModel::AddFile(const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(absl::StrCat(directory_, "/", name)));
  files_.push_back(std::make_unique<SafetensorsFile>(std::move(file)));
  return absl::OkStatus();
}

absl::Status HuggingFaceModel::TakePrefixOff() {
  for (const auto& file : files_) {
    for (const auto& tensor : file->tensors()) {
      absl::string_view name = tensor.first;
      absl::ConsumePrefix(&name, HuggingFacePrefix(shape_.family));
      if (tensors_.emplace(std::string(name), &tensor.second).second) continue;
      return Invalid(absl::StrCat(file->file().path(), ": ", Quoted(name), " is there twice, with the prefix \"",
                                  HuggingFacePrefix(shape_.family), "\" and without, or in two files"));
    }
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceModel::CheckTensors() {
  std::set<std::string> expected;
  for (const ParameterInfo& parameter : Parameters(shape_)) {
    for (const HuggingFacePart& part : HuggingFaceParts(shape_, parameter)) {
      MUSTER_RETURN_IF_ERROR(CheckPart(parameter, part));
      expected.insert(part.name);
    }
  }
  for (const auto& tensor : tensors_) {
    if (expected.count(tensor.first) > 0) continue;
    MUSTER_RETURN_IF_ERROR(CheckSurplus(tensor.first, *tensor.second));
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceModel::CheckPart(const ParameterInfo& parameter, const HuggingFacePart& part) const {
  const auto found = tensors_.find(part.name);
  if (found == tensors_.end()) {
    return Invalid(absl::StrCat(directory_, ": ", Quoted(part.name), " ", ShapeOf(part.dims), " is missing; it holds ",
                                parameter.name));
  }
  const StoredTensor& tensor = *found->second;
  if (tensor.dims != part.dims) {
    return Invalid(absl::StrCat(directory_, ": ", Quoted(part.name), " is ", ShapeOf(tensor.dims), ", the model needs ",
                                ShapeOf(part.dims), " for ", parameter.name));
  }
  if (IsStoredFloat(tensor.type)) return absl::OkStatus();
  return Invalid(absl::StrCat(directory_, ": ", Quoted(part.name), " has the type ", StoredTypeName(tensor.type),
                              "; F32, BF16 and F16 are read"));
}

// A tensor that is no parameter of the model.
absl::Status HuggingFaceModel::CheckSurplus(const std::string& name, const StoredTensor& tensor) const {
  if (IsHuggingFaceBuffer(shape_.family, name)) return absl::OkStatus();
  if (name != kHuggingFaceHead || !shape_.tied) {
    return Invalid(absl::StrCat(directory_, ": ", Quoted(name), " ", ShapeOf(tensor.dims),
                                " belongs to no parameter of this model"));
  }
  const std::vector<ParameterInfo> parameters = Parameters(shape_);
  const auto tied = std::find_if(parameters.begin(), parameters.end(),
                                 [](const ParameterInfo& parameter) { return parameter.name == kTiedParameter; });
  const StoredTensor& embedding = *tensors_.at(HuggingFaceParts(shape_, *tied).front().name);
  if (tensor.type == embedding.type && tensor.data == embedding.data) return absl::OkStatus();
  return Invalid(absl::StrCat(directory_, ": ", Quoted(name), " is not the token embedding, though ",
                              kHuggingFaceConfig, " says that they are tied; set tie_word_embeddings to false there"));
}

void HuggingFaceModel::Read(const ParameterInfo& parameter, int64_t first_element, absl::Span<float> values) const {
  const int64_t end = first_element + static_cast<int64_t>(values.size());
  const int64_t columns = parameter.elements() / parameter.dims[0];
  for (const HuggingFacePart& part : HuggingFaceParts(shape_, parameter)) {
    const int64_t part_first = part.first_row * columns;
    const int64_t from = std::max(first_element, part_first);
    const int64_t to = std::min(end, part_first + part.rows * columns);
    if (from >= to) continue;
    ReadPart(*tensors_.at(part.name), part, from - part_first,
             values.subspan(static_cast<size_t>(from - first_element), static_cast<size_t>(to - from)));
  }
}

}  // namespace muster
