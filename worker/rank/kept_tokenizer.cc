#include "worker/rank/kept_tokenizer.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/formats/checkpoint_paths.h"
#include "common/formats/tokenizer.h"

namespace muster {

absl::Status KeepTokenizer(const v1::JobSpec& resolved, const RankRoots& roots, const std::string& checkpoints) {
  if (checkpoints.empty() || resolved.data().train().empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const std::string prefix,
                          BelowRoot(roots.data, resolved.data().train(0).path(), "data.train[0].path"));
  const std::string from = TokenizerDirectory(prefix);
  if (!PathExists(from)) return absl::OkStatus();
  const std::string to = TokenizerBesideCheckpoints(checkpoints);
  MUSTER_RETURN_IF_ERROR(MakeDirectories(to));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(from));
  for (const std::string& name : names) {
    MUSTER_ASSIGN_OR_RETURN(const std::string contents, ReadFile(absl::StrCat(from, "/", name)));
    MUSTER_RETURN_IF_ERROR(WriteFileDurably(absl::StrCat(to, "/", name), contents));
  }
  return absl::OkStatus();
}

}  // namespace muster
