// Runs calls on Gloo's device thread, so that no other thread ever holds the lock of a connection.
//
// Gloo's event loop does not wait for such a lock: it looks again at once, and again. On a machine with fewer cores
// than threads it then spins away its whole time slice while the thread that holds the lock waits for a core: a barrier
// of four ranks on two busy cores took 5 ms, most of it in the kernel, and takes under 1 ms this way.
#pragma once

#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/loop.h>

#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// Thread-safe. Destroyed before the device.
class GlooPostQueue : private gloo::transport::tcp::Handler {
 public:
  // Throws std::exception, as Gloo does, when the system has no descriptor left.
  explicit GlooPostQueue(std::shared_ptr<gloo::transport::tcp::Device> device);
  // What has not begun by then is never run.
  ~GlooPostQueue() override;
  GlooPostQueue(const GlooPostQueue&) = delete;
  GlooPostQueue& operator=(const GlooPostQueue&) = delete;

  // Runs them soon, one after the other. They must not block and not throw.
  void Run(std::vector<std::function<void()>> calls);

 private:
  void handleEvents(int events) override;  // Gloo's name

  const std::shared_ptr<gloo::transport::tcp::Device> device_;
  int event_ = -1;  // descriptor that is readable while calls wait

  absl::Mutex mutex_;
  std::vector<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster
