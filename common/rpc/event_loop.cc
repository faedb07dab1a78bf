#include "common/rpc/event_loop.h"

#include <algorithm>

#include "common/base/check.h"

namespace muster {

void EventLoop::Run() {
  mutex_.Lock();
  thread_ = std::this_thread::get_id();
  while (true) {
    RunReadyTasks();
    if (stopping_) break;
    const auto woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || timers_changed_ || !tasks_.empty();
    };
    timers_changed_ = false;
    mutex_.AwaitWithTimeout(absl::Condition(&woken), UntilNextTimer());
  }
  thread_ = std::thread::id();
  mutex_.Unlock();
}

void EventLoop::Stop() {
  absl::MutexLock lock(&mutex_);
  stopping_ = true;
}

void EventLoop::Post(Task task) {
  absl::MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
}

EventLoop::TimerId EventLoop::After(absl::Duration delay, Task task) {
  absl::MutexLock lock(&mutex_);
  const TimerId id = next_timer_++;
  const absl::Duration due = clock_->SinceBoot() + std::max(delay, absl::ZeroDuration());
  timers_.emplace(std::make_pair(due, id), std::move(task));
  due_.emplace(id, due);
  timers_changed_ = true;
  return id;
}

void EventLoop::CancelTimer(TimerId id) {
  Task dropped;  // destroyed outside the lock
  absl::MutexLock lock(&mutex_);
  const auto due = due_.find(id);
  if (due == due_.end()) return;
  const auto timer = timers_.find({due->second, id});
  dropped = std::move(timer->second);
  timers_.erase(timer);
  due_.erase(due);
}

void EventLoop::RunReady() {
  mutex_.Lock();
  const std::thread::id before = thread_;
  thread_ = std::this_thread::get_id();
  RunReadyTasks();
  thread_ = before;
  mutex_.Unlock();
}

void EventLoop::RunReadyTasks() {
  for (CollectDueTimers(); !tasks_.empty(); CollectDueTimers()) {
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    mutex_.Unlock();
    task();
    task = nullptr;  // what it captured may post from its destructor
    mutex_.Lock();
  }
}

void EventLoop::AssertHeld() const {
  absl::MutexLock lock(&mutex_);
  MUSTER_CHECK(thread_ == std::this_thread::get_id(), "called off the event loop");
}

void EventLoop::CollectDueTimers() {
  const absl::Duration now = clock_->SinceBoot();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    due_.erase(timers_.begin()->first.second);
    tasks_.push_back(std::move(timers_.begin()->second));
    timers_.erase(timers_.begin());
  }
}

absl::Duration EventLoop::UntilNextTimer() const {
  if (timers_.empty()) return absl::InfiniteDuration();
  return std::max(timers_.begin()->first.first - clock_->SinceBoot(), absl::ZeroDuration());
}

}  // namespace muster
