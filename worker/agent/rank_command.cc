#include "worker/agent/rank_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// The arguments with the profiler before them. Its report has the rank's name; training goes on when it has recorded
// enough.
absl::StatusOr<std::vector<std::string>> UnderProfiler(const RankCommandOptions& options,
                                                       const v1::Assignment& assignment,
                                                       std::vector<std::string> arguments) {
  const v1::RankProfile& profile = assignment.profile();
  const std::string program = FindProgram(profile.profiler());
  if (program.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(profile.profiler(), ", under which this rank is to start, is not in the PATH of muster-worker"));
  }
  const std::string directory = absl::StrCat(options.checkpoint_root, "/", profile.directory());
  MUSTER_RETURN_IF_ERROR(MakeDirectories(directory));
  std::vector<std::string> all = {program,
                                  "profile",
                                  "--trace=cuda,nvtx,osrt",
                                  "--sample=none",
                                  "--force-overwrite=true",
                                  "--kill=none",
                                  "--wait=all",
                                  absl::StrCat("--duration=", std::max<int64_t>(1, profile.duration().seconds())),
                                  absl::StrCat("--output=", directory, "/", assignment.job_id(), ".attempt-",
                                               assignment.attempt(), ".rank-", assignment.rank())};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

}  // namespace

std::string FindProgram(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const std::string& directory : std::vector<std::string>(absl::StrSplit(path == nullptr ? "" : path, ':'))) {
    const std::string program = absl::StrCat(directory, "/", name);
    if (!directory.empty() && access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

std::string RankDirectory(const std::string& state_dir, const RankKey& rank) {
  return absl::StrCat(state_dir, "/ranks/", rank.job_id, ".", rank.attempt, ".", rank.rank);
}

int64_t RankMemoryBytes(const RankCommandOptions& options, const v1::Assignment& assignment) {
  const int64_t asked = assignment.resolved_spec().resources().memory_per_rank_bytes();
  return asked > 0 ? std::min(asked, options.device_memory_bytes) : options.device_memory_bytes;
}

absl::StatusOr<ChildCommand> PrepareRank(const RankCommandOptions& options, const v1::Assignment& assignment) {
  const std::string directory = RankDirectory(options.state_dir, RankKey::Of(assignment));
  const std::string assignment_file = directory + "/assignment.binpb";
  MUSTER_RETURN_IF_ERROR(MakeDirectories(directory));
  MUSTER_RETURN_IF_ERROR(WriteFileDurably(assignment_file, assignment.SerializeAsString()));

  ChildCommand command;
  command.arguments = {options.program,
                       "--assignment=" + assignment_file,
                       "--agent=" + options.agent_address,
                       "--coordinator=" + options.coordinator,
                       "--data-root=" + options.data_root,
                       "--checkpoint-root=" + options.checkpoint_root,
                       "--lease-file=" + options.lease_file,
                       "--lock-file=" + directory + "/lock",
                       "--host=" + options.address};
  if (!assignment.profile().profiler().empty()) {
    MUSTER_ASSIGN_OR_RETURN(command.arguments, UnderProfiler(options, assignment, std::move(command.arguments)));
  }
  const int64_t threads = std::max<int64_t>(1, assignment.resolved_spec().training().threads_per_rank());
  // Read by libraries when they are loaded: too late to set inside the rank.
  command.environment = {
      {"OMP_NUM_THREADS", absl::StrCat(threads)},
      {"OMP_WAIT_POLICY", "passive"},
      {"OMP_DYNAMIC", "false"},
      // Every further arena of malloc reserves address space; one is enough for threads that allocate little.
      {"MALLOC_ARENA_MAX", "2"}};
  const int64_t memory = RankMemoryBytes(options, assignment);
  if (memory > 0) command.data_limit_bytes = memory + kRankReservedBytes;
  command.stack_limit_bytes = kRankStackBytes;
  return command;
}

}  // namespace muster
