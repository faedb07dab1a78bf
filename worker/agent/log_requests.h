// Answers the coordinator's LogRequests from the spool: the end of a log at once, and what follows as it is written.
//
// Owned by the agent; on the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "muster/v1/worker.pb.h"
#include "worker/agent/log_spool.h"

namespace muster {

class LogRequests {
 public:
  using Send = std::function<void(v1::LogReply reply)>;

  // `spool` outlives this. `worker` is our name.
  LogRequests(LogSpool* spool, std::string worker, Send send)
      : spool_(spool), worker_(std::move(worker)), send_(std::move(send)) {}
  ~LogRequests();

  void Handle(const v1::LogRequest& request);

  // The connection on which the requests came is gone, and they with it.
  void CancelAll();

 private:
  void SendTail(int64_t request, const RankKey& rank, int64_t tail_lines);
  void SendLines(int64_t request, const RankKey& rank, absl::string_view lines);
  void Follow(int64_t request, const RankKey& rank);
  void SendDone(int64_t request);
  void Cancel(int64_t request);

  LogSpool* const spool_;
  const std::string worker_;
  const Send send_;
  std::map<int64_t, std::map<int64_t, LogSpool::FollowId>> following_;  // by request and rank
};

}  // namespace muster
