#include "worker/data/data_wait_advice.h"

#include "absl/strings/str_format.h"

namespace muster {

std::optional<std::string> DataWaitAdvisor::AddStep(double wait_seconds, double wall_seconds) {
  ++steps_;
  wait_seconds_ += wait_seconds;
  wall_seconds_ += wall_seconds;
  if (wait_seconds > kNoticed * wall_seconds) ++steps_that_waited_;
  if (steps_ < kWindowSteps) return std::nullopt;

  const double share = wall_seconds_ > 0 ? wait_seconds_ / wall_seconds_ : 0;
  const bool steady = 2 * steps_that_waited_ > steps_;
  const int64_t waited = steps_that_waited_;
  steps_ = steps_that_waited_ = 0;
  wait_seconds_ = wall_seconds_ = 0;
  if (share <= kTolerated || share < 2 * advised_share_) return std::nullopt;
  advised_share_ = share;
  const std::string found = absl::StrFormat(
      "%.0f%% of the last %d steps' time was spent waiting for data, in %d of them", 100 * share, kWindowSteps, waited);
  if (steady) {
    return absl::StrFormat("%s: samples are read too slowly; raise data.loader_threads from %d to %d", found,
                           loader_threads_, 2 * loader_threads_);
  }
  return absl::StrFormat("%s: reading stalls now and then; raise data.prefetch_steps from %d to %d", found,
                         prefetch_steps_, 2 * prefetch_steps_);
}

}  // namespace muster
