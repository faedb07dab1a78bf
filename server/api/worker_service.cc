#include "server/api/worker_service.h"

#include <deque>
#include <optional>
#include <utility>

#include "common/rpc/grpc_status.h"

namespace muster {
namespace {

// One agent's stream. Reads and writes end on gRPC's threads, everything else happens on the loop, where it is also
// deleted.
class SessionCall : public grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>, public WorkerSession {
 public:
  SessionCall(EventLoop* loop, const WorkerServiceParts& parts)
      : loop_(loop), registry_(parts.registry), parts_(parts) {
    StartRead(&incoming_);
  }

  void Send(v1::CoordinatorMessage message) override {
    if (end_.has_value()) return;
    outgoing_.push_back(std::move(message));
    if (outgoing_.size() == 1) StartWrite(&outgoing_.front());
  }

  void Close(absl::Status status) override {
    if (!end_.has_value()) end_ = std::move(status);
    if (outgoing_.empty()) FinishNow();
  }

  void OnReadDone(bool ok) override {
    loop_->Post([this, ok] {
      if (!ok) return Close(absl::OkStatus());
      Handle();
      if (!end_.has_value()) StartRead(&incoming_);
    });
  }

  void OnWriteDone(bool ok) override {
    loop_->Post([this, ok] {
      outgoing_.pop_front();
      if (!ok) outgoing_.clear();
      if (!outgoing_.empty()) return StartWrite(&outgoing_.front());
      if (!ok) Close(absl::CancelledError("the agent has gone"));
      if (end_.has_value()) FinishNow();
    });
  }

  void OnCancel() override {
    loop_->Post([this] { Close(absl::CancelledError("the agent has gone")); });
  }

  void OnDone() override {
    loop_->Post([this] {
      registry_->Disconnect(this);
      delete this;
    });
  }

 private:
  void Handle() {
    switch (incoming_.message_case()) {
      case v1::WorkerMessage::kHello: {
        const absl::Status connected = registry_->Connect(this, incoming_.hello());
        if (!connected.ok()) Close(connected);
        return;
      }
      case v1::WorkerMessage::kHeartbeat:
        return registry_->Heartbeat(this, incoming_.heartbeat());
      case v1::WorkerMessage::kReport:
      case v1::WorkerMessage::kLogReply: {
        const std::string worker = registry_->NameOf(this);
        if (worker.empty()) return;  // no Hello yet, or another session took its place
        if (incoming_.has_report()) {
          TakeReport(worker, incoming_.report());
        } else {
          parts_.logs->OnReply(worker, incoming_.log_reply());
        }
        return;
      }
      default:
        Close(absl::InvalidArgumentError("a message of a kind that this musterd does not know"));
    }
  }

  void TakeReport(const std::string& worker, const v1::RankReport& report) {
    if (report.has_trace()) return parts_.traces->OnReport(report);
    if (parts_.supervisor->OnReport(worker, report)) parts_.metrics->OnReport(report);
  }

  void FinishNow() {
    if (std::exchange(finished_, true)) return;
    registry_->Disconnect(this);
    Finish(ToGrpcStatus(*end_));
  }

  EventLoop* const loop_;
  WorkerRegistry* const registry_;
  const WorkerServiceParts parts_;

  // On the loop, but for the message that gRPC reads or writes just now.
  v1::WorkerMessage incoming_;
  std::deque<v1::CoordinatorMessage> outgoing_;  // the front is being written
  std::optional<absl::Status> end_;
  bool finished_ = false;
};

}  // namespace

grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* WorkerService::Session(
    grpc::CallbackServerContext* context) {
  return new SessionCall(loop_, parts_);
}

}  // namespace muster
