#include "worker/agent/log_requests.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr size_t kChunkBytes = 256 << 10;  // well under the 4 MiB that gRPC takes in one message

}  // namespace

LogRequests::~LogRequests() { CancelAll(); }

void LogRequests::Handle(const v1::LogRequest& request) {
  Cancel(request.request());
  if (request.cancel()) return;
  const int64_t attempt = request.attempt() > 0 ? request.attempt() : spool_->NewestAttempt(request.job_id());
  std::vector<int64_t> ranks(request.ranks().begin(), request.ranks().end());
  if (ranks.empty()) ranks = spool_->Ranks(request.job_id(), attempt);
  for (const int64_t rank : ranks) {
    const RankKey key{request.job_id(), attempt, rank};
    SendTail(request.request(), key, request.tail_lines());
    if (request.follow() && spool_->IsLive(key)) Follow(request.request(), key);
  }
  if (following_.count(request.request()) == 0) SendDone(request.request());
}

void LogRequests::SendTail(int64_t request, const RankKey& rank, int64_t tail_lines) {
  const absl::StatusOr<std::string> tail = spool_->Tail(rank, tail_lines);
  if (tail.ok()) SendLines(request, rank, *tail);  // without a log here there is nothing to send
}

void LogRequests::SendLines(int64_t request, const RankKey& rank, absl::string_view lines) {
  while (!lines.empty()) {
    size_t bytes = lines.size();
    if (bytes > kChunkBytes) {
      const size_t end = lines.rfind('\n', kChunkBytes - 1);
      bytes = end == absl::string_view::npos ? kChunkBytes : end + 1;
    }
    v1::LogReply reply;
    reply.set_request(request);
    reply.mutable_chunk()->set_attempt(rank.attempt);
    reply.mutable_chunk()->set_rank(rank.rank);
    reply.mutable_chunk()->set_worker(worker_);
    reply.mutable_chunk()->set_data(lines.data(), bytes);
    send_(std::move(reply));
    lines.remove_prefix(bytes);
  }
}

void LogRequests::Follow(int64_t request, const RankKey& rank) {
  following_[request][rank.rank] =
      spool_->Follow(rank, [this, request](const RankKey& key, absl::string_view lines, bool ended) {
        SendLines(request, key, lines);
        if (!ended) return;
        std::map<int64_t, LogSpool::FollowId>& open = following_[request];
        spool_->Unfollow(open[key.rank]);
        open.erase(key.rank);
        if (!open.empty()) return;
        following_.erase(request);
        SendDone(request);
      });
}

void LogRequests::SendDone(int64_t request) {
  v1::LogReply reply;
  reply.set_request(request);
  reply.set_done(true);
  send_(std::move(reply));
}

void LogRequests::Cancel(int64_t request) {
  const auto found = following_.find(request);
  if (found == following_.end()) return;
  for (const auto& [rank, id] : found->second) spool_->Unfollow(id);
  following_.erase(found);
}

void LogRequests::CancelAll() {
  while (!following_.empty()) Cancel(following_.begin()->first);
}

}  // namespace muster
