#include "worker/agent/log_spool.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// "attempt-12" -> 12; -1 for another name.
int64_t NumberOf(absl::string_view name, absl::string_view prefix, absl::string_view suffix) {
  int64_t number = -1;
  if (!absl::ConsumePrefix(&name, prefix) || !absl::ConsumeSuffix(&name, suffix)) return -1;
  return absl::SimpleAtoi(name, &number) ? number : -1;
}

}  // namespace

std::string LogSpool::AttemptDirectory(const std::string& job_id, int64_t attempt) const {
  return absl::StrCat(options_.directory, "/", job_id, "/attempt-", attempt);
}

std::string LogSpool::PathOf(const RankKey& rank) const {
  return absl::StrCat(AttemptDirectory(rank.job_id, rank.attempt), "/rank-", rank.rank, ".log");
}

absl::Status LogSpool::Begin(const RankKey& rank) {
  Prune();
  MUSTER_RETURN_IF_ERROR(MakeDirectories(AttemptDirectory(rank.job_id, rank.attempt)));
  MUSTER_ASSIGN_OR_RETURN(live_[rank], RankLog::Open(PathOf(rank), options_.bytes_per_rank));
  return absl::OkStatus();
}

void LogSpool::Append(const RankKey& rank, absl::string_view bytes) {
  const auto found = live_.find(rank);
  if (found == live_.end()) return;
  const std::string lines = found->second->Append(bytes);
  if (!lines.empty()) Tell(rank, lines, /*ended=*/false);
}

std::vector<std::string> LogSpool::End(const RankKey& rank) {
  const auto found = live_.find(rank);
  if (found == live_.end()) return {};
  const std::string lines = found->second->Finish();
  std::vector<std::string> last_lines = found->second->last_lines();
  live_.erase(found);
  Tell(rank, lines, /*ended=*/true);
  return last_lines;
}

absl::StatusOr<std::string> LogSpool::Tail(const RankKey& rank, int64_t lines) const {
  return ReadRankLog(PathOf(rank), lines);
}

int64_t LogSpool::NewestAttempt(const std::string& job_id) const {
  int64_t newest = 0;
  const auto names = ListDirectory(absl::StrCat(options_.directory, "/", job_id));
  if (!names.ok()) return 0;
  for (const std::string& name : *names) newest = std::max(newest, NumberOf(name, "attempt-", ""));
  return newest;
}

std::vector<int64_t> LogSpool::Ranks(const std::string& job_id, int64_t attempt) const {
  std::vector<int64_t> ranks;
  const auto names = ListDirectory(AttemptDirectory(job_id, attempt));
  if (!names.ok()) return ranks;
  for (const std::string& name : *names) {
    if (const int64_t rank = NumberOf(name, "rank-", ".log"); rank >= 0) ranks.push_back(rank);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

LogSpool::FollowId LogSpool::Follow(const RankKey& rank, Follower follower) {
  followers_[next_follow_] = Following{rank, std::move(follower)};
  return next_follow_++;
}

void LogSpool::Unfollow(FollowId id) { followers_.erase(id); }

void LogSpool::Tell(const RankKey& rank, absl::string_view lines, bool ended) {
  std::vector<FollowId> ids;  // a follower may unfollow while it is called
  for (const auto& [id, following] : followers_) {
    if (following.rank == rank) ids.push_back(id);
  }
  for (const FollowId id : ids) {
    const auto found = followers_.find(id);
    if (found == followers_.end()) continue;
    const Follower call = found->second.follower;
    call(rank, lines, ended);
  }
}

void LogSpool::Prune() {
  namespace fs = std::filesystem;
  struct Attempt {
    fs::file_time_type newest;
    std::string path;
    int64_t bytes = 0;
  };
  std::vector<Attempt> attempts;
  int64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator job(options_.directory, error), end; !error && job != end; job.increment(error)) {
    for (const fs::directory_entry& attempt : fs::directory_iterator(job->path(), error)) {
      Attempt found{{}, attempt.path().string(), 0};
      for (const fs::directory_entry& file : fs::directory_iterator(attempt.path(), error)) {
        found.bytes += static_cast<int64_t>(file.file_size(error));
        found.newest = std::max(found.newest, file.last_write_time(error));
      }
      total += found.bytes;
      attempts.push_back(found);
    }
  }
  std::sort(attempts.begin(), attempts.end(), [](const Attempt& a, const Attempt& b) { return a.newest < b.newest; });
  for (const Attempt& attempt : attempts) {
    if (total <= options_.bytes_total) return;
    const bool in_use = std::any_of(live_.begin(), live_.end(), [&](const auto& live) {
      return AttemptDirectory(live.first.job_id, live.first.attempt) == attempt.path;
    });
    if (!in_use && RemoveTree(attempt.path, options_.directory).ok()) total -= attempt.bytes;
  }
}

}  // namespace muster
