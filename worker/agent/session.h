// The agent's connection to the coordinator: one stream at a time, made again with backoff and jitter when it breaks.
//
// Owned by the agent; on the loop. gRPC's threads only post to the loop.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/event_loop.h"
#include "muster/v1/worker.grpc.pb.h"

namespace muster {

struct SessionOptions {
  // Before the first attempt after a break; doubles with each failure up to the longest, each time shortened by up to
  // half so that the workers of a cluster do not come back all at once.
  absl::Duration first_backoff = absl::Milliseconds(100);
  absl::Duration longest_backoff = absl::Seconds(1);
  // A coordinator that accepts the connection and says nothing for this long is given up.
  absl::Duration welcome_deadline = absl::Seconds(10);
};

// All called on the loop.
struct SessionEvents {
  // The first message of a stream.
  std::function<v1::Hello()> make_hello;
  // The stream is up. `hello_sent`: when the Hello left, Clock::SinceBoot.
  std::function<void(const v1::Welcome& welcome, absl::Duration hello_sent)> on_welcome;
  // Everything after the Welcome.
  std::function<void(const v1::CoordinatorMessage& message)> on_message;
  // The stream broke, or could not be made; it will be tried again.
  std::function<void(const absl::Status& status)> on_lost;
};

class CoordinatorSession {
 public:
  // The pointers outlive this.
  CoordinatorSession(EventLoop* loop, const Clock* clock, v1::WorkerService::StubInterface* stub,
                     SessionOptions options, SessionEvents events);
  // Breaks the stream and waits until gRPC is done with it.
  ~CoordinatorSession();

  void Start();

  // Between the Welcome and the loss of the stream.
  bool connected() const { return connected_; }

  // Queues a message on the stream. Without a connection it is dropped: a new stream begins with all that is to be
  // known.
  void Send(v1::WorkerMessage message);

 private:
  class Stream;

  void Connect();
  void OnMessage(const v1::CoordinatorMessage& message);
  void OnStreamDone(const absl::Status& status);

  EventLoop* const loop_;
  const Clock* const clock_;
  v1::WorkerService::StubInterface* const stub_;
  const SessionOptions options_;
  const SessionEvents events_;

  std::shared_ptr<Stream> stream_;
  bool connected_ = false;
  absl::Duration hello_sent_;
  absl::Duration backoff_;
  EventLoop::TimerId retry_timer_ = 0;    // 0: none
  EventLoop::TimerId welcome_timer_ = 0;  // 0: none
  std::mt19937_64 random_{std::random_device{}()};
};

}  // namespace muster
