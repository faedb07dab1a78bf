// Wakes blocked waits of Gloo now and then, so that the waiting thread can look whether its peer is still connected.
//
// Gloo wakes a wait when a connection breaks before or after a transfer, but not when it breaks in the middle of one:
// that buffer is in none of the lists it signals, and the wait would last until the deadline. The ticker runs on Gloo's
// own device thread, as one more descriptor of its event loop.
#pragma once

#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/loop.h>
#include <gloo/transport/unbound_buffer.h>

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace muster {

// Thread-safe. Made by the thread that makes the device, destroyed before it.
class GlooTicker : private gloo::transport::tcp::Handler {
 public:
  // Throws std::exception, as Gloo does, when the system has no descriptor left.
  GlooTicker(std::shared_ptr<gloo::transport::tcp::Device> device, absl::Duration period);
  ~GlooTicker() override;
  GlooTicker(const GlooTicker&) = delete;
  GlooTicker& operator=(const GlooTicker&) = delete;

  // While it lives, waitSend and waitRecv of the buffer return false once in a period. One of them may do so once more
  // afterwards.
  class Scope {
   public:
    Scope(GlooTicker& ticker, gloo::transport::UnboundBuffer& buffer);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    GlooTicker& ticker_;
    gloo::transport::UnboundBuffer* const buffer_;
  };

 private:
  void handleEvents(int events) override;  // Gloo's name

  const std::shared_ptr<gloo::transport::tcp::Device> device_;
  int timer_ = -1;  // descriptor of a timer

  absl::Mutex mutex_;
  std::vector<gloo::transport::UnboundBuffer*> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster
