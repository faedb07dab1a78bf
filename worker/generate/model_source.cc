#include "worker/generate/model_source.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/formats/checkpoint_paths.h"
#include "common/formats/checkpoint_source.h"
#include "common/formats/hugging_face_config.h"
#include "common/formats/hugging_face_model.h"

namespace muster {
namespace {

int64_t ColumnsOf(const ParameterInfo& parameter) { return parameter.elements() / parameter.dims[0]; }

ModelSource OfCheckpoint(FoundCheckpoint found) {
  ModelSource source;
  source.directory = found.directory;
  source.shape = found.reader.manifest().model;
  source.tokenizer_directory = CheckpointTokenizerDirectory(found.directory);
  source.note = std::move(found.passed_over);
  const auto reader = std::make_shared<CheckpointReader>(std::move(found.reader));
  source.read = [reader](const ParameterInfo& parameter, int64_t first_row, absl::Span<float> rows) {
    LocalTensor tensor{.name = parameter.name,
                       .kind = StateKind::kMaster,
                       .type = StoredType::kF32,
                       .global_dims = parameter.dims,
                       .box = {std::vector<int64_t>(parameter.dims.size(), 0), parameter.dims},
                       .data = rows.data()};
    tensor.box.offset[0] = first_row;
    tensor.box.dims[0] = static_cast<int64_t>(rows.size()) / ColumnsOf(parameter);
    return reader->Read(tensor);
  };
  return source;
}

absl::StatusOr<ModelSource> OfHuggingFace(const std::string& directory) {
  ModelSource source;
  source.directory = directory;
  MUSTER_ASSIGN_OR_RETURN(source.shape, ReadHuggingFaceShape(directory));
  MUSTER_ASSIGN_OR_RETURN(HuggingFaceModel opened, HuggingFaceModel::Open(directory, source.shape));
  const auto model = std::make_shared<HuggingFaceModel>(std::move(opened));
  source.read = [model](const ParameterInfo& parameter, int64_t first_row, absl::Span<float> rows) {
    model->Read(parameter, first_row * ColumnsOf(parameter), rows);
    return absl::OkStatus();
  };
  source.tokenizer_directory = directory;
  return source;
}

}  // namespace

absl::StatusOr<ModelSource> OpenModelSource(const std::string& path) {
  if (PathExists(absl::StrCat(path, "/", kHuggingFaceConfig))) return OfHuggingFace(path);
  MUSTER_ASSIGN_OR_RETURN(FoundCheckpoint found, FindCheckpoint(path));
  return OfCheckpoint(std::move(found));
}

}  // namespace muster
