// An event loop on a thread of its own, and ways to look at what lives on it without sleeping.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/event_loop.h"

namespace muster {

// Used by the test's thread. What lives on the loop is made and destroyed by Do.
class LoopThread {
 public:
  explicit LoopThread(const Clock* clock) : loop_(clock), thread_([this] { loop_.Run(); }) {}
  ~LoopThread() {
    loop_.Stop();
    loop_.Post([] {});
    thread_.join();
  }

  EventLoop* loop() { return &loop_; }

  // Runs it on the loop and waits for it.
  void Do(const std::function<void()>& task) {
    absl::Notification done;
    loop_.Post([&] {
      task();
      done.Notify();
    });
    done.WaitForNotification();
  }

  // Looks at `condition` on the loop until it is true. False after `limit`.
  bool Await(const std::function<bool()>& condition, absl::Duration limit = absl::Seconds(30)) {
    const auto watch = std::make_shared<Watch>();
    watch->condition = condition;
    loop_.Post([this, watch] { Look(watch); });
    const bool met = watch->met.WaitForNotificationWithTimeout(limit);
    Do([&] { watch->given_up = true; });  // from here on nobody looks at what the condition refers to
    return met;
  }

 private:
  struct Watch {
    std::function<bool()> condition;
    absl::Notification met;
    bool given_up = false;
  };

  void Look(const std::shared_ptr<Watch>& watch) {
    if (watch->given_up) return;
    if (watch->condition()) return watch->met.Notify();
    loop_.After(absl::Milliseconds(2), [this, watch] { Look(watch); });
  }

  EventLoop loop_;
  std::thread thread_;
};

}  // namespace muster
