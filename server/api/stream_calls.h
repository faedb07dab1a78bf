// Calls that last, as seen by gRPC: reactors that post to the coordinator's loop, live on it, and are deleted on it
// after OnDone.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/grpc_status.h"
#include "muster/v1/job.pb.h"
#include "server/job/job_manager.h"
#include "server/job/log_relay.h"
#include "server/job/trace_relay.h"

namespace muster {

// Writes messages in order and ends the stream behind the last. Derived classes put messages in on the loop.
template <typename Message>
class StreamCall : public grpc::ServerWriteReactor<Message> {
 public:
  explicit StreamCall(EventLoop* loop) : loop_(loop) {}

  void OnWriteDone(bool ok) final {
    loop_->Post([this, ok] {
      writing_ = false;
      if (!ok) return FinishNow(absl::CancelledError("the caller has gone"));
      WriteNext();
    });
  }

  void OnCancel() final {
    loop_->Post([this] {
      Abandon();
      end_ = absl::CancelledError("the caller has gone");
      if (!writing_) FinishNow(*end_);
    });
  }

  void OnDone() final {
    loop_->Post([this] {
      Abandon();
      delete this;
    });
  }

 protected:
  // Called on the loop: nothing more is wanted of the source.
  virtual void Abandon() = 0;
  // The next message to write, if there is one.
  virtual std::optional<Message> Next() = 0;

  // Called on the loop when Next may have one.
  void WriteNext() {
    if (writing_ || finished_) return;
    std::optional<Message> next = Next();
    if (next.has_value()) {
      writing_ = true;
      message_ = *std::move(next);
      this->StartWrite(&message_);
    } else if (end_.has_value()) {
      FinishNow(*end_);
    }
  }

  // Called on the loop: ends the stream behind what is still to be written.
  void End(absl::Status status) {
    if (!end_.has_value()) end_ = std::move(status);
    WriteNext();
  }

  EventLoop* loop() const { return loop_; }

 private:
  void FinishNow(const absl::Status& status) {
    if (std::exchange(finished_, true)) return;
    this->Finish(ToGrpcStatus(status));
  }

  EventLoop* const loop_;

  // On the loop.
  Message message_;
  bool writing_ = false;
  bool finished_ = false;
  std::optional<absl::Status> end_;
};

// WatchJob. A caller who reads slowly gets fewer, newer states, and every event.
class WatchCall : public StreamCall<v1::WatchJobResponse>, public JobWatcher {
 public:
  WatchCall(EventLoop* loop, JobManager* manager, JobTable* table, v1::WatchJobRequest request);

  void OnChange(const v1::WatchJobResponse& change) override;
  void OnEnd(absl::Status end) override { End(std::move(end)); }

 private:
  void Abandon() override { table_->Unwatch(this); }
  std::optional<v1::WatchJobResponse> Next() override { return std::exchange(pending_, std::nullopt); }

  JobTable* const table_;
  std::optional<v1::WatchJobResponse> pending_;
};

// StreamLogs. A caller who reads too slowly is cut off.
class LogCall : public StreamCall<v1::LogChunk>, public LogReader {
 public:
  LogCall(EventLoop* loop, LogRelay* relay, v1::StreamLogsRequest request);

  void OnChunk(const v1::LogChunk& chunk) override;
  void OnEnd(absl::Status end) override { End(std::move(end)); }

 private:
  void Abandon() override { relay_->Close(this); }
  std::optional<v1::LogChunk> Next() override;

  LogRelay* const relay_;
  std::deque<v1::LogChunk> pending_;
  size_t pending_bytes_ = 0;
};

// TraceJob.
class TraceCall : public StreamCall<v1::TraceChunk>, public TraceReader {
 public:
  TraceCall(EventLoop* loop, TraceRelay* relay, v1::TraceJobRequest request);

  void OnChunk(const v1::TraceChunk& chunk) override;
  void OnEnd(absl::Status end) override { End(std::move(end)); }

 private:
  void Abandon() override { relay_->Close(this); }
  std::optional<v1::TraceChunk> Next() override;

  TraceRelay* const relay_;
  std::deque<v1::TraceChunk> pending_;
};

// A stream of no messages: a call that this version does not have.
template <typename Message>
class RefusedStream : public grpc::ServerWriteReactor<Message> {
 public:
  explicit RefusedStream(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace muster
