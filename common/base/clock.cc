#include "common/base/clock.h"

#include <ctime>

#include "absl/time/clock.h"

namespace muster {
namespace {

class SystemClock : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }

  absl::Duration SinceBoot() const override {
    timespec time{};
    clock_gettime(CLOCK_BOOTTIME, &time);
    return absl::DurationFromTimespec(time);
  }
};

}  // namespace

std::unique_ptr<Clock> MakeSystemClock() { return std::make_unique<SystemClock>(); }

}  // namespace muster
