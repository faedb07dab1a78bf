// The seam to time. Everything that waits or stamps takes a Clock, so that tests use tests/support/fake_clock.h and
// never sleep.
#pragma once

#include <memory>

#include "absl/time/time.h"

namespace muster {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // Wall time, for what people read. May jump.
  virtual absl::Time Now() const = 0;

  // Time since boot, running through suspend (CLOCK_BOOTTIME): for leases, deadlines and durations. Equal for every
  // process of one host, never compared between hosts.
  virtual absl::Duration SinceBoot() const = 0;
};

// The host's clocks.
std::unique_ptr<Clock> MakeSystemClock();

}  // namespace muster
