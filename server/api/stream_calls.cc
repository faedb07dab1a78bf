#include "server/api/stream_calls.h"

namespace muster {
namespace {

// Of one reader's logs that wait to be sent. A terminal that stands still for long must not eat the coordinator's
// memory.
constexpr size_t kLogBytesPending = size_t{32} << 20;
// Of one message of a timeline.
constexpr size_t kTraceBytes = size_t{1} << 20;

}  // namespace

WatchCall::WatchCall(EventLoop* loop, JobManager* manager, JobTable* table, v1::WatchJobRequest request)
    : StreamCall(loop), table_(table) {
  loop->Post([this, manager, request = std::move(request)] {
    if (absl::Status watched = manager->Watch(request, this); !watched.ok()) End(std::move(watched));
  });
}

void WatchCall::OnChange(const v1::WatchJobResponse& change) {
  if (pending_.has_value()) {
    pending_->set_resume_token(change.resume_token());
    *pending_->mutable_job() = change.job();
    pending_->mutable_events()->MergeFrom(change.events());
  } else {
    pending_ = change;
  }
  WriteNext();
}

LogCall::LogCall(EventLoop* loop, LogRelay* relay, v1::StreamLogsRequest request) : StreamCall(loop), relay_(relay) {
  loop->Post([this, request = std::move(request)] {
    if (absl::Status opened = relay_->Open(request, this); !opened.ok()) End(std::move(opened));
  });
}

void LogCall::OnChunk(const v1::LogChunk& chunk) {
  pending_bytes_ += chunk.data().size();
  if (pending_bytes_ > kLogBytesPending) {
    relay_->Close(this);
    pending_.clear();
    pending_bytes_ = 0;
    End(ErrorWithInfo(absl::StatusCode::kResourceExhausted, "READER_TOO_SLOW",
                      "the logs come faster than they are read; ask again with tail_lines"));
    return;
  }
  pending_.push_back(chunk);
  WriteNext();
}

std::optional<v1::LogChunk> LogCall::Next() {
  if (pending_.empty()) return std::nullopt;
  v1::LogChunk next = std::move(pending_.front());
  pending_.pop_front();
  pending_bytes_ -= next.data().size();
  return next;
}

TraceCall::TraceCall(EventLoop* loop, TraceRelay* relay, v1::TraceJobRequest request)
    : StreamCall(loop), relay_(relay) {
  loop->Post([this, request = std::move(request)] {
    if (absl::Status opened = relay_->Open(request, this); !opened.ok()) End(std::move(opened));
  });
}

void TraceCall::OnChunk(const v1::TraceChunk& chunk) {
  // gRPC takes 4 MiB in one message; a part of a timeline has about two.
  for (size_t begin = 0; begin == 0 || begin < chunk.data().size(); begin += kTraceBytes) {
    v1::TraceChunk& part = pending_.emplace_back();
    part.set_data(chunk.data().substr(begin, kTraceBytes));
  }
  pending_.back().set_message(chunk.message());
  WriteNext();
}

std::optional<v1::TraceChunk> TraceCall::Next() {
  if (pending_.empty()) return std::nullopt;
  v1::TraceChunk next = std::move(pending_.front());
  pending_.pop_front();
  return next;
}

}  // namespace muster
