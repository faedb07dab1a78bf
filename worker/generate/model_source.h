// Where the weights of a model come from: a checkpoint, the newest good one below a job's directory, or a Hugging Face
// directory.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/plan/model_shape.h"

namespace muster {

struct ModelSource {
  std::string directory;  // the checkpoint's own
  ModelShape shape;
  // Fills `rows` with whole rows of a parameter, first_row on; a vector's rows are single elements. One thread at a
  // time.
  std::function<absl::Status(const ParameterInfo& parameter, int64_t first_row, absl::Span<float> rows)> read;
  // Where the tokenizer of the model's data is kept, if it is.
  std::string tokenizer_directory;
  std::string note;  // what the user should know of the choice, such as a damaged checkpoint that was passed over
};

// Errors are those of FindCheckpoint and HuggingFaceModel::Open.
absl::StatusOr<ModelSource> OpenModelSource(const std::string& path);

}  // namespace muster
