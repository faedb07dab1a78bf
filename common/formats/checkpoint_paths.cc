#include "common/formats/checkpoint_paths.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr absl::string_view kAttemptPrefix = "attempt-";
constexpr absl::string_view kStepPrefix = "step-";

int64_t NumberAfter(absl::string_view name, absl::string_view prefix) {
  int64_t number = -1;
  if (!absl::ConsumePrefix(&name, prefix) || !absl::SimpleAtoi(name, &number)) return -1;
  return number >= 0 && absl::StrCat(number) == name ? number : -1;
}

}  // namespace

std::string AttemptDirectory(const std::string& root, int64_t attempt) {
  return absl::StrCat(root, "/", kAttemptPrefix, attempt);
}

std::string CheckpointDirectory(const std::string& root, const CheckpointId& id) {
  return absl::StrCat(AttemptDirectory(root, id.attempt), "/", kStepPrefix, id.step);
}

std::string UnfinishedCheckpointDirectory(const std::string& root, const CheckpointId& id) {
  return CheckpointDirectory(root, id) + kUnfinishedSuffix;
}

std::string ShardFileName(int64_t rank) { return absl::StrFormat("rank-%05d.safetensors", rank); }

std::string TokenizerBesideCheckpoints(const std::string& root) { return absl::StrCat(root, "/tokenizer"); }

std::string CheckpointTokenizerDirectory(const std::string& checkpoint) {
  return TokenizerBesideCheckpoints(absl::StrCat(checkpoint, "/../.."));
}

int64_t AttemptOfName(absl::string_view name) { return NumberAfter(name, kAttemptPrefix); }

int64_t StepOfName(absl::string_view name) { return NumberAfter(name, kStepPrefix); }

absl::StatusOr<std::vector<CheckpointId>> FindCheckpoints(const std::string& root) {
  std::vector<CheckpointId> found;
  if (!PathExists(root)) return found;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> attempts, ListDirectory(root));
  for (const std::string& attempt_name : attempts) {
    const int64_t attempt = AttemptOfName(attempt_name);
    if (attempt < 0) continue;
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> steps, ListDirectory(AttemptDirectory(root, attempt)));
    for (const std::string& step_name : steps) {
      const CheckpointId id{attempt, StepOfName(step_name)};
      if (id.step < 0) continue;
      if (PathExists(absl::StrCat(CheckpointDirectory(root, id), "/", kManifestFileName))) found.push_back(id);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace muster
