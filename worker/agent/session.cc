#include "worker/agent/session.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "absl/synchronization/notification.h"
#include "common/rpc/grpc_status.h"

namespace muster {

// One stream. Everything is done on the loop but the reactor's calls, which come from gRPC and post to it. Kept alive
// by the tasks that it posts, and cut off from the session (session_ null) when the session is done with it.
class CoordinatorSession::Stream : public grpc::ClientBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>,
                                   public std::enable_shared_from_this<Stream> {
 public:
  Stream(EventLoop* loop, CoordinatorSession* session) : loop_(loop), session_(session) {}

  void Begin(v1::WorkerService::StubInterface* stub, v1::WorkerMessage hello) {
    stub->async()->Session(&context_, this);
    AddHold();  // until Break, so that the loop may start operations at any time
    holding_ = true;
    StartRead(&incoming_);
    Send(std::move(hello));
    StartCall();
  }

  void Send(v1::WorkerMessage message) {
    outgoing_.push_back(std::move(message));
    if (outgoing_.size() == 1) StartWrite(&outgoing_.front());
  }

  // Ends the stream; OnDone follows.
  void Break() {
    context_.TryCancel();
    if (holding_) RemoveHold();
    holding_ = false;
  }

  void CutOff() { session_ = nullptr; }
  void WaitUntilDone() { done_.WaitForNotification(); }

 private:
  void OnReadDone(bool ok) override {
    loop_->Post([self = shared_from_this(), ok] {
      if (!ok) return self->Break();
      if (self->session_ != nullptr) self->session_->OnMessage(self->incoming_);
      if (self->holding_) self->StartRead(&self->incoming_);
    });
  }

  void OnWriteDone(bool ok) override {
    loop_->Post([self = shared_from_this(), ok] {
      if (!ok) return self->Break();
      self->outgoing_.pop_front();
      if (!self->outgoing_.empty() && self->holding_) self->StartWrite(&self->outgoing_.front());
    });
  }

  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<Stream> alive = shared_from_this();  // the loop may drop its own before the notification
    loop_->Post([self = alive, status = FromGrpcStatus(status)] {
      if (self->session_ != nullptr) self->session_->OnStreamDone(status);
    });
    done_.Notify();
  }

  EventLoop* const loop_;
  CoordinatorSession* session_;  // on the loop
  grpc::ClientContext context_;
  v1::CoordinatorMessage incoming_;
  std::deque<v1::WorkerMessage> outgoing_;  // the front is being written
  bool holding_ = false;
  absl::Notification done_;
};

CoordinatorSession::CoordinatorSession(EventLoop* loop, const Clock* clock, v1::WorkerService::StubInterface* stub,
                                       SessionOptions options, SessionEvents events)
    : loop_(loop), clock_(clock), stub_(stub), options_(options), events_(std::move(events)) {}

CoordinatorSession::~CoordinatorSession() {
  if (retry_timer_ != 0) loop_->CancelTimer(retry_timer_);
  if (welcome_timer_ != 0) loop_->CancelTimer(welcome_timer_);
  if (stream_ == nullptr) return;
  stream_->CutOff();
  stream_->Break();
  stream_->WaitUntilDone();
}

void CoordinatorSession::Start() {
  backoff_ = options_.first_backoff;
  Connect();
}

void CoordinatorSession::Connect() {
  retry_timer_ = 0;
  v1::WorkerMessage hello;
  *hello.mutable_hello() = events_.make_hello();
  stream_ = std::make_shared<Stream>(loop_, this);
  hello_sent_ = clock_->SinceBoot();
  welcome_timer_ = loop_->After(options_.welcome_deadline, [this] {
    welcome_timer_ = 0;
    stream_->Break();
  });
  stream_->Begin(stub_, std::move(hello));
}

void CoordinatorSession::Send(v1::WorkerMessage message) {
  if (connected_) stream_->Send(std::move(message));
}

void CoordinatorSession::OnMessage(const v1::CoordinatorMessage& message) {
  if (connected_) return events_.on_message(message);
  if (!message.has_welcome()) return stream_->Break();
  loop_->CancelTimer(std::exchange(welcome_timer_, 0));
  connected_ = true;
  backoff_ = options_.first_backoff;
  events_.on_welcome(message.welcome(), hello_sent_);
}

void CoordinatorSession::OnStreamDone(const absl::Status& status) {
  if (welcome_timer_ != 0) loop_->CancelTimer(std::exchange(welcome_timer_, 0));
  connected_ = false;
  stream_.reset();
  const absl::Duration delay = backoff_ * std::uniform_real_distribution<double>(0.5, 1.0)(random_);
  backoff_ = std::min(backoff_ * 2, options_.longest_backoff);
  retry_timer_ = loop_->After(delay, [this] { Connect(); });
  events_.on_lost(status.ok() ? absl::UnavailableError("the coordinator closed the session") : status);
}

}  // namespace muster
