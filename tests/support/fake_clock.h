// Time that moves only when a test says so.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace muster {

// Thread-safe. Wall time starts on 2026-01-01, the host has been up for an hour.
class FakeClock : public Clock {
 public:
  absl::Time Now() const override {
    absl::MutexLock lock(&mutex_);
    return now_;
  }

  absl::Duration SinceBoot() const override {
    absl::MutexLock lock(&mutex_);
    return since_boot_;
  }

  void Advance(absl::Duration by) {
    absl::MutexLock lock(&mutex_);
    now_ += by;
    since_boot_ += by;
  }

 private:
  mutable absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::FromUnixSeconds(1767225600);
  absl::Duration since_boot_ ABSL_GUARDED_BY(mutex_) = absl::Hours(1);
};

}  // namespace muster
