// The weights of a Hugging Face directory, read as logical parameters: config.json with model.safetensors, or with
// model.safetensors.index.json and the shards that it names.
//
// Immutable after Open; any thread may read. Files are mapped, not read: nothing large is allocated.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/formats/hugging_face_names.h"
#include "common/formats/safetensors.h"
#include "common/plan/model_shape.h"

namespace muster {

inline constexpr char kHuggingFaceWeights[] = "model.safetensors";
inline constexpr char kHuggingFaceIndex[] = "model.safetensors.index.json";

// What its config.json says (hugging_face_config.h). NOT_FOUND for a directory without one.
absl::StatusOr<ModelShape> ReadHuggingFaceShape(const std::string& directory);

class HuggingFaceModel {
 public:
  // INVALID_ARGUMENT naming file and tensor when config.json says another shape (CheckSameShape), and when a tensor is
  // missing, surplus or of another shape or type than the model's; a tied model's lm_head.weight may be there if it
  // equals the embedding. NOT_FOUND without weights, saying what is read.
  static absl::StatusOr<HuggingFaceModel> Open(const std::string& directory, const ModelShape& shape);

  const ModelShape& shape() const { return shape_; }

  // Fills `values` with elements first_element, first_element + 1, ... (row-major) of the parameter, widened to fp32.
  // A pure function, as TrainerParts::initial_weights wants it. REQUIRES: a parameter of shape(); elements inside it.
  void Read(const ParameterInfo& parameter, int64_t first_element, absl::Span<float> values) const;

 private:
  HuggingFaceModel(std::string directory, const ModelShape& shape) : directory_(std::move(directory)), shape_(shape) {}

  absl::Status OpenFiles();
  absl::Status OpenShards(const std::string& index_path);
  absl::Status AddFile(const std::string& name);
  absl::Status TakePrefixOff();
  absl::Status CheckTensors();
  absl::Status CheckPart(const ParameterInfo& parameter, const HuggingFacePart& part) const;
  absl::Status CheckSurplus(const std::string& name, const StoredTensor& tensor) const;

  std::string directory_;
  ModelShape shape_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, const StoredTensor*> tensors_;  // by the name without the base model's prefix
};

}  // namespace muster
