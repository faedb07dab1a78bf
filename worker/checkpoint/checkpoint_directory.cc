#include "worker/checkpoint/checkpoint_directory.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

std::string ProbePath(const std::string& root, int64_t attempt) {
  return absl::StrCat(AttemptDirectory(root, attempt), "/shared-directory-probe");
}

}  // namespace

absl::Status RemoveLeftovers(const std::string& root, int64_t attempt) {
  if (!PathExists(root)) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> attempts, ListDirectory(root));
  for (const std::string& attempt_name : attempts) {
    const int64_t earlier = AttemptOfName(attempt_name);
    if (earlier < 0 || earlier >= attempt) continue;
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(AttemptDirectory(root, earlier)));
    for (absl::string_view name : names) {
      absl::string_view step = name;
      if (!absl::ConsumeSuffix(&step, kUnfinishedSuffix) && !absl::ConsumeSuffix(&step, kDeletingSuffix)) continue;
      if (StepOfName(step) < 0) continue;  // not ours
      MUSTER_RETURN_IF_ERROR(RemoveTree(absl::StrCat(AttemptDirectory(root, earlier), "/", name), root));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckUnused(const std::string& root, int64_t attempt) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<CheckpointId> checkpoints, FindCheckpoints(root));
  for (const CheckpointId& id : checkpoints) {
    if (id.attempt != attempt) continue;
    return absl::FailedPreconditionError(absl::StrCat("checkpoint.directory: ", CheckpointDirectory(root, id),
                                                      " is there already, from another job; move ", root,
                                                      " away or choose another checkpoint.directory"));
  }
  return absl::OkStatus();
}

absl::Status WriteProbe(const std::string& root, int64_t attempt, const std::string& nonce) {
  MUSTER_RETURN_IF_ERROR(MakeDirectories(AttemptDirectory(root, attempt)));
  return WriteFileDurably(ProbePath(root, attempt), nonce);
}

absl::Status CheckProbe(const std::string& root, int64_t attempt, const std::string& nonce) {
  const std::string path = ProbePath(root, attempt);
  const absl::StatusOr<std::string> found = ReadFile(path);
  if (found.ok() && *found == nonce) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("checkpoint.directory is not shared by all workers: what rank 0 wrote to ", path, " is not there (",
                   found.ok() ? std::string("another content") : std::string(found.status().message()),
                   "); mount one file system at the same path on every worker"));
}

absl::Status RemoveProbe(const std::string& root, int64_t attempt) {
  return RemoveTree(ProbePath(root, attempt), root);
}

}  // namespace muster
