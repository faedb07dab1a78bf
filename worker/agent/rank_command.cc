#include "worker/agent/rank_command.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace muster {

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
