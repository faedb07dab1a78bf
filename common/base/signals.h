// SIGTERM and SIGINT as calls on a thread, not as interrupts.
#pragma once

#include <functional>
#include <thread>

namespace muster {

// Blocks both signals for the calling thread and all that it starts later, and waits for them on a thread of its own:
// make one at the top of main, before any other thread. A child process must unblock them before exec
// (UnblockShutdownSignals).
class ShutdownSignals {
 public:
  // `on_signal(signal, count)` runs on the waiting thread for each signal; count is 1 for the first.
  explicit ShutdownSignals(std::function<void(int signal, int count)> on_signal);
  ~ShutdownSignals();

 private:
  std::thread thread_;
};

// Async-signal-safe: for use between fork and exec.
void UnblockShutdownSignals();

}  // namespace muster
