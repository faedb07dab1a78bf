#include "worker/rank/options.h"

#include "absl/strings/str_cat.h"

namespace muster {

absl::Status CheckRankOptions(const RankOptions& options) {
  if (options.local_file.empty() == options.assignment_file.empty()) {
    return absl::InvalidArgumentError(
        "--local JOB-FILE runs a whole job in this process; --assignment is for an agent, which starts ranks. Give one "
        "of them");
  }
  if (!options.local_file.empty()) return absl::OkStatus();
  if (options.resume) return absl::InvalidArgumentError("--resume: is for --local, the coordinator tells other ranks");
  for (const auto& [flag, value] :
       {std::pair<const char*, const std::string&>{"--agent", options.agent}, {"--coordinator", options.coordinator}}) {
    if (value.empty()) return absl::InvalidArgumentError(absl::StrCat(flag, ": is needed with --assignment"));
  }
  return absl::OkStatus();
}

}  // namespace muster
