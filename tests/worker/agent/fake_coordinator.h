// A coordinator for the tests of the agent: takes sessions, keeps what it hears, says what the test says. A real gRPC
// server on loopback.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/rpc/proto_time.h"
#include "muster/v1/worker.grpc.pb.h"

namespace muster {

class FakeCoordinator : public v1::WorkerService::Service {
 public:
  // Port 0: a free one, kept when it is started again.
  void Start() {
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port_), grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  void Stop() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_.reset();
  }
  ~FakeCoordinator() override { Stop(); }

  int port() const { return port_; }

  // Before Start.
  absl::Duration fence_after = absl::Minutes(10);
  bool answers_heartbeats = true;

  // To the newest session.
  void Send(const v1::CoordinatorMessage& message) {
    absl::MutexLock lock(&mutex_);
    if (stream_ != nullptr) stream_->Write(message);
  }

  // Until a message that was heard since the last successful call satisfies it. Returns that message, or an empty one
  // after the limit.
  v1::WorkerMessage Await(const std::function<bool(const v1::WorkerMessage&)>& wanted,
                          absl::Duration limit = absl::Seconds(30)) {
    absl::MutexLock lock(&mutex_);
    bool found = false;
    const auto heard = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {  // asked any number of times
      while (!found && next_ < heard_.size()) found = wanted(heard_[next_++]);
      return found;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&heard), limit) ? heard_[next_ - 1] : v1::WorkerMessage();
  }

 private:
  using Stream = grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>;

  grpc::Status Session(grpc::ServerContext* context, Stream* stream) override {
    {
      absl::MutexLock lock(&mutex_);
      stream_ = stream;
    }
    v1::WorkerMessage message;
    while (stream->Read(&message)) {
      absl::MutexLock lock(&mutex_);
      heard_.push_back(message);
      Answer(message, stream);
    }
    absl::MutexLock lock(&mutex_);
    if (stream_ == stream) stream_ = nullptr;
    return grpc::Status::OK;
  }

  void Answer(const v1::WorkerMessage& message, Stream* stream) {
    v1::CoordinatorMessage answer;
    if (message.has_hello()) {
      *answer.mutable_welcome()->mutable_heartbeat_interval() = ToProto(absl::Seconds(1));
      *answer.mutable_welcome()->mutable_fence_after() = ToProto(fence_after);
      stream->Write(answer);
    } else if (message.has_heartbeat() && answers_heartbeats) {
      answer.mutable_heartbeat_acknowledged()->set_sequence(message.heartbeat().sequence());
      stream->Write(answer);
    }
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;

  absl::Mutex mutex_;
  Stream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<v1::WorkerMessage> heard_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster
