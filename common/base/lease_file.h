// The lease that an agent stamps and its ranks read: until when (CLOCK_BOOTTIME) they may go on without the agent
// having heard from the coordinator. One 8-byte word in a small file that both map into memory, so that reading it
// before every optimizer step costs a load, and a stopped agent cannot keep an old gang alive.
//
// The agent owns the stamp, each rank a reader. The word is atomic: any thread of any process may read.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

// A mapping of one lease file. Movable; unmaps when it ends.
class LeaseMapping {
 public:
  // Opens, or creates with a lease that has passed. FAILED_PRECONDITION for a file that is no lease.
  static absl::StatusOr<LeaseMapping> Map(const std::string& path, bool create);

  LeaseMapping(LeaseMapping&& other) noexcept : deadline_(std::exchange(other.deadline_, nullptr)) {}
  LeaseMapping& operator=(LeaseMapping&& other) noexcept {
    std::swap(deadline_, other.deadline_);
    return *this;
  }
  ~LeaseMapping();

  std::atomic<int64_t>& deadline_nanoseconds() const { return *deadline_; }

 private:
  explicit LeaseMapping(std::atomic<int64_t>* deadline) : deadline_(deadline) {}

  std::atomic<int64_t>* deadline_;
};

// The agent's side: one writer. Used by one thread at a time.
class LeaseStamp {
 public:
  // Starts with a lease that has passed.
  static absl::StatusOr<LeaseStamp> Create(const std::string& path);

  // The lease holds until `since_boot` (Clock::SinceBoot); InfiniteDuration: for ever.
  void Set(absl::Duration since_boot);

 private:
  explicit LeaseStamp(LeaseMapping mapping) : mapping_(std::move(mapping)) {}

  LeaseMapping mapping_;
};

// A rank's side. Any thread may call.
class LeaseReader {
 public:
  static absl::StatusOr<LeaseReader> Open(const std::string& path);

  // UNAVAILABLE when the lease has passed at `since_boot`.
  absl::Status Check(absl::Duration since_boot) const;

 private:
  explicit LeaseReader(LeaseMapping mapping) : mapping_(std::move(mapping)) {}

  LeaseMapping mapping_;
};

}  // namespace muster
