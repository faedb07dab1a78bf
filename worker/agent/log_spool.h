// The logs of all ranks that ran here: DIRECTORY/JOB/attempt-N/rank-M.log. Bounded for each rank and in all.
//
// Owned by the agent; on the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/agent/rank_key.h"
#include "worker/agent/rank_log.h"

namespace muster {

struct LogSpoolOptions {
  std::string directory;
  int64_t bytes_per_rank = int64_t{16} << 20;
  int64_t bytes_total = int64_t{1} << 30;  // of attempts that have ended; checked when a log begins
};

class LogSpool {
 public:
  using FollowId = uint64_t;
  // Whole lines, as they come; `ended` with the last call.
  using Follower = std::function<void(const RankKey& rank, absl::string_view lines, bool ended)>;

  explicit LogSpool(LogSpoolOptions options) : options_(std::move(options)) {}

  absl::Status Begin(const RankKey& rank);
  void Append(const RankKey& rank, absl::string_view bytes);
  // Returns its last lines. The log stays on disk.
  std::vector<std::string> End(const RankKey& rank);

  bool IsLive(const RankKey& rank) const { return live_.count(rank) > 0; }

  // The newest lines of a rank, living or not; 0: all that is kept.
  absl::StatusOr<std::string> Tail(const RankKey& rank, int64_t lines) const;

  // The newest attempt of a job that has logs here; 0: none.
  int64_t NewestAttempt(const std::string& job_id) const;
  std::vector<int64_t> Ranks(const std::string& job_id, int64_t attempt) const;

  // Called with what is appended from now on.
  FollowId Follow(const RankKey& rank, Follower follower);
  void Unfollow(FollowId id);

 private:
  struct Following {
    RankKey rank;
    Follower follower;
  };

  std::string AttemptDirectory(const std::string& job_id, int64_t attempt) const;
  std::string PathOf(const RankKey& rank) const;
  void Tell(const RankKey& rank, absl::string_view lines, bool ended);
  void Prune();

  const LogSpoolOptions options_;
  std::map<RankKey, std::unique_ptr<RankLog>> live_;
  std::map<FollowId, Following> followers_;
  FollowId next_follow_ = 1;
};

}  // namespace muster
