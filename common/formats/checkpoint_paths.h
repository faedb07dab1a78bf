// Where checkpoints lie under a job's root, ROOT/attempt-N/step-M, and which of them are there. Free functions without
// state: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/formats/checkpoint_manifest.h"

namespace muster {

std::string AttemptDirectory(const std::string& root, int64_t attempt);
std::string CheckpointDirectory(const std::string& root, const CheckpointId& id);  // ROOT/attempt-3/step-200
// ROOT/attempt-3/step-200.tmp
std::string UnfinishedCheckpointDirectory(const std::string& root, const CheckpointId& id);
inline constexpr char kUnfinishedSuffix[] = ".tmp";

std::string ShardFileName(int64_t rank);  // rank-00002.safetensors

// ROOT/tokenizer: the files of the tokenizer of the job's data, where it is known.
std::string TokenizerBesideCheckpoints(const std::string& root);
// The same, seen from the directory of one checkpoint.
std::string CheckpointTokenizerDirectory(const std::string& checkpoint);

// N of "attempt-N", M of "step-M"; -1 for any other name. Only the spelling that the writer uses: no sign, no leading
// zero.
int64_t AttemptOfName(absl::string_view name);
int64_t StepOfName(absl::string_view name);

// Complete checkpoints, oldest first by (attempt, step). A root that does not exist yet has none.
absl::StatusOr<std::vector<CheckpointId>> FindCheckpoints(const std::string& root);

}  // namespace muster
