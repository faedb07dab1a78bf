// From what the coordinator assigns to what the engine trains. Pure, but for reading the assignment's file.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "muster/v1/worker.pb.h"
#include "worker/data/gpt_sample_source.h"
#include "worker/engine/engine_config.h"

namespace muster {

// The directories below which the paths of jobs lie.
struct RankRoots {
  std::string data;
  std::string checkpoints;
};

// Binary, or JSON where the name ends in .json. INVALID_ARGUMENT naming the file when it does not parse.
absl::StatusOr<v1::Assignment> ReadAssignment(const std::string& path);

// `validation_windows`: windows in the validation data, 0 without any. INVALID_ARGUMENT naming the field when a path
// leaves its root or the cuts do not fit the model.
absl::StatusOr<EngineConfig> MakeEngineConfig(const v1::Assignment& assignment, const RankRoots& roots,
                                              int64_t validation_windows);

// Where the training or validation samples come from.
absl::StatusOr<GptSampleSourceOptions> TrainingData(const v1::JobSpec& resolved, const RankRoots& roots);
absl::StatusOr<GptSampleSourceOptions> ValidationData(const v1::JobSpec& resolved, const RankRoots& roots);

// ROOT/path. INVALID_ARGUMENT, naming `field`, for an absolute path and for one with "..".
absl::StatusOr<std::string> BelowRoot(const std::string& root, const std::string& path, const std::string& field);

}  // namespace muster
