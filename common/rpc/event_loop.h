// A single-threaded event loop: the one writer of a daemon's state. gRPC handlers, the store's thread and signal
// handlers post to it; managers run on it and check that they do.
//
// Post, Stop and the constructor may be called from any thread, the rest on the loop. As an ABSL_LOCKABLE class, "on
// the loop" is a capability: mark members ABSL_GUARDED_BY(loop) and methods ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop), and
// clang's -Wthread-safety checks them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace muster {

class ABSL_LOCKABLE EventLoop {
 public:
  using Task = absl::AnyInvocable<void()>;
  using TimerId = uint64_t;

  explicit EventLoop(const Clock* clock) : clock_(clock) {}
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Runs tasks and timers on the calling thread until Stop. Tasks that are still queued then are run first.
  void Run();

  // Thread-safe. Run returns soon; later posts are dropped when the loop is destroyed.
  void Stop();

  // Thread-safe. Tasks of one thread run in the order posted.
  void Post(Task task);

  // Runs the task once after `delay`. Thread-safe.
  TimerId After(absl::Duration delay, Task task);

  // The timer will not run (it may have). Thread-safe.
  void CancelTimer(TimerId id);

  // For tests with a fake clock: on the calling thread, runs what is posted and due now, and what that posts, and
  // returns.
  void RunReady();

  // Aborts when called off the loop.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK();

 private:
  // Runs posted tasks and due timers, with the mutex released, until there are none.
  void RunReadyTasks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves timers that are due behind the posted tasks.
  void CollectDueTimers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration UntilNextTimer() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;

  mutable absl::Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<absl::Duration, TimerId>, Task> timers_ ABSL_GUARDED_BY(mutex_);  // by due time since boot
  std::map<TimerId, absl::Duration> due_ ABSL_GUARDED_BY(mutex_);
  TimerId next_timer_ ABSL_GUARDED_BY(mutex_) = 1;
  bool timers_changed_ ABSL_GUARDED_BY(mutex_) = false;  // the loop's wait may be too long
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread::id thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster
