#include "worker/agent/earlier_ranks.h"

#include <signal.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/file_lock.h"
#include "common/base/status_macros.h"
#include "common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr char kReportsFile[] = "/reports.binpb";

v1::RankExit DiedWithItsAgent() {
  v1::RankExit exit;
  exit.set_kind(v1::EXIT_INFRASTRUCTURE);
  exit.set_exit_code(-1);
  exit.set_signal(SIGKILL);
  exit.set_message("the agent of its worker died, and the rank with it");
  *exit.mutable_time() = ToProto(absl::Now());
  return exit;
}

absl::StatusOr<v1::ObservedRank> ReadEnded(const std::string& directory) {
  MUSTER_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(directory + "/assignment.binpb"));
  v1::Assignment assignment;
  if (!assignment.ParseFromString(bytes))
    return absl::DataLossError(absl::StrCat(directory, " has a broken assignment"));
  v1::ObservedRank ended;
  ended.set_job_id(assignment.job_id());
  ended.set_attempt(assignment.attempt());
  ended.set_rank(assignment.rank());
  ended.set_device(assignment.device());
  ended.set_phase(v1::RANK_EXITED);
  const absl::StatusOr<std::string> exit = ReadFile(directory + "/exit.binpb");
  if (!exit.ok() || !ended.mutable_exit()->ParseFromString(*exit)) *ended.mutable_exit() = DiedWithItsAgent();
  return ended;
}

// None is no error: the rank said nothing, or its agent died with it.
void ReadReports(const std::string& directory, std::vector<v1::RankReport>& reports) {
  const absl::StatusOr<std::string> bytes = ReadFile(directory + kReportsFile);
  v1::RankReports kept;
  if (!bytes.ok() || !kept.ParseFromString(*bytes)) return;
  reports.insert(reports.end(), kept.reports().begin(), kept.reports().end());
}

}  // namespace

absl::Status KeepReports(const std::string& directory, const std::vector<v1::RankReport>& reports) {
  if (reports.empty()) return absl::OkStatus();
  v1::RankReports kept;
  for (const v1::RankReport& report : reports) *kept.add_reports() = report;
  return WriteFileDurably(directory + kReportsFile, kept.SerializeAsString());
}

absl::StatusOr<EarlierRanks> FindEarlierRanks(const std::string& state_dir) {
  EarlierRanks found;
  const std::string ranks_dir = state_dir + "/ranks";
  if (!PathExists(ranks_dir)) return found;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(ranks_dir));
  for (const std::string& name : names) {
    const std::string directory = absl::StrCat(ranks_dir, "/", name);
    const std::string lock_file = directory + "/lock";
    const absl::StatusOr<bool> held = FileLock::IsHeld(lock_file);
    if (held.ok() && *held) {
      found.living.push_back(lock_file);
      continue;
    }
    const absl::StatusOr<v1::ObservedRank> ended = ReadEnded(directory);
    if (ended.ok()) {
      found.ended.push_back(*ended);
      ReadReports(directory, found.reports);
    } else {  // no rank was started from it
      MUSTER_RETURN_IF_ERROR(RemoveTree(directory, state_dir));
    }
  }
  return found;
}

void KillLockHolder(const std::string& lock_file) {
  const absl::StatusOr<bool> held = FileLock::IsHeld(lock_file);
  const absl::StatusOr<std::string> text = ReadFile(lock_file);
  int64_t pid = 0;
  if (!held.ok() || !*held || !text.ok() || !absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &pid) || pid <= 1)
    return;
  kill(static_cast<pid_t>(pid), SIGKILL);
}

}  // namespace muster
