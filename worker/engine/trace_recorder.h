// Records the timeline of some steps of one rank, as TrainerObserver::OnTrace hands it on.
//
// Owned by the trainer, for its thread. Costs nothing while nothing is recorded.
#pragma once

#include <cstdint>
#include <optional>

#include "worker/engine/observer.h"
#include "worker/engine/phase_timer.h"

namespace muster {

class TraceRecorder {
 public:
  // The timer outlives this.
  explicit TraceRecorder(PhaseTimer& timer) : timer_(timer) {}

  // Records `steps` steps from `first_step`, the next to begin. Does nothing while it records, or for steps 0.
  void Schedule(int64_t first_step, int64_t steps);

  // When the step begins, after the timer was restarted.
  void BeforeStep(int64_t step);

  // When the step has ended. The report, after the last step that was asked for or when `last` says that no more come.
  std::optional<TraceReport> AfterStep(int64_t step, bool last);

 private:
  bool Covers(int64_t step) const { return step >= report_.first_step && step < end_step_; }

  PhaseTimer& timer_;
  TraceReport report_;
  int64_t end_step_ = 0;  // one behind the last; 0: nothing is recorded
};

}  // namespace muster
