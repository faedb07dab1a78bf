#include "common/formats/checkpoint_source.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/formats/checkpoint_paths.h"

namespace muster {
namespace {

absl::StatusOr<CheckpointReader> OpenVerified(const std::string& directory) {
  MUSTER_ASSIGN_OR_RETURN(CheckpointReader reader, CheckpointReader::Open(directory));
  MUSTER_RETURN_IF_ERROR(reader.Verify());
  return reader;
}

}  // namespace

absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& path) {
  if (PathExists(absl::StrCat(path, "/", kManifestFileName))) {
    MUSTER_ASSIGN_OR_RETURN(CheckpointReader reader, OpenVerified(path));
    return FoundCheckpoint{path, std::move(reader), ""};
  }
  if (!PathExists(path)) return absl::NotFoundError(absl::StrCat(path, " does not exist"));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<CheckpointId> ids, FindCheckpoints(path));
  std::string passed_over;
  for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
    const std::string directory = CheckpointDirectory(path, *id);
    absl::StatusOr<CheckpointReader> reader = OpenVerified(directory);
    if (reader.ok()) return FoundCheckpoint{directory, *std::move(reader), std::move(passed_over)};
    absl::StrAppend(&passed_over, reader.status().message(), "\n");
  }
  if (!passed_over.empty()) {
    return absl::DataLossError(absl::StrCat("no checkpoint below ", path, " is whole:\n", passed_over));
  }
  return absl::NotFoundError(absl::StrCat(path, " is no checkpoint (it has no ", kManifestFileName,
                                          ") and has none below it as attempt-N/step-M"));
}

}  // namespace muster
