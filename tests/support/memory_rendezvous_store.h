// A RendezvousStore for ranks that are threads of one process.
#pragma once

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "worker/comm/rendezvous_store.h"

namespace muster {

// Thread-safe.
class MemoryRendezvousStore : public RendezvousStore {
 public:
  absl::Status Set(absl::string_view key, absl::string_view value) override {
    absl::MutexLock lock(&mutex_);
    const auto [entry, inserted] = values_.emplace(std::string(key), std::string(value));
    if (!inserted && entry->second != value) {
      return absl::AlreadyExistsError(absl::StrCat("key ", key, " holds another value"));
    }
    changed_.SignalAll();
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration timeout) override {
    const absl::Time deadline = absl::Now() + timeout;
    absl::MutexLock lock(&mutex_);
    for (;;) {
      const auto entry = values_.find(std::string(key));
      if (entry != values_.end()) return entry->second;
      if (changed_.WaitWithDeadline(&mutex_, deadline)) {
        return absl::DeadlineExceededError(
            absl::StrCat("key ", key, " was not set within ", absl::FormatDuration(timeout)));
      }
    }
  }

 private:
  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::map<std::string, std::string> values_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster
