// Attributes every moment of a rank's wall time to one phase: a scope pauses the phase around it, so no moment counts
// twice and the phases add up to the whole.
//
// Owned by the trainer, for its thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/engine/observer.h"

namespace muster {

class PhaseTimer {
 public:
  explicit PhaseTimer(const Clock& clock);

  // Begins a step in phase kOther.
  void Restart();

  // From now on time belongs to `phase`; returns the one it belonged to.
  Phase Enter(Phase phase);

  // Since Restart, up to this call. The step goes on.
  PhaseSeconds Seconds();

  // From now on every stretch of time is also appended to `spans`, as part of `step`; null ends that. REQUIRES: the
  // vector lives until then.
  void Record(std::vector<TraceSpan>* spans, int64_t step);

  using Spent = std::array<absl::Duration, kPhases>;  // by Phase
  Spent Save();
  // Forgets the time since Save() gave this.
  void Restore(const Spent& spent);

 private:
  void Attribute();

  const Clock& clock_;
  Phase current_ = Phase::kOther;
  absl::Duration since_;  // up to where time is attributed
  Spent spent_{};
  std::vector<TraceSpan>* spans_ = nullptr;  // null: not recorded
  int64_t recorded_step_ = 0;
};

// The phase for as long as it lives.
class PhaseScope {
 public:
  PhaseScope(PhaseTimer& timer, Phase phase) : timer_(timer), outer_(timer.Enter(phase)) {}
  ~PhaseScope() { timer_.Enter(outer_); }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  PhaseTimer& timer_;
  const Phase outer_;
};

// Time for as long as it lives belongs to no phase, whatever scopes open in between: it is reported by itself.
class PhasePause {
 public:
  explicit PhasePause(PhaseTimer& timer) : timer_(timer), before_(timer.Save()) {}
  ~PhasePause() { timer_.Restore(before_); }
  PhasePause(const PhasePause&) = delete;
  PhasePause& operator=(const PhasePause&) = delete;

 private:
  PhaseTimer& timer_;
  const PhaseTimer::Spent before_;
};

}  // namespace muster
