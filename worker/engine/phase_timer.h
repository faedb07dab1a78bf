// Attributes every moment of a rank's wall time to one phase: a scope pauses the phase around it, so no moment counts
// twice and the phases add up to the whole. Each scope is a span of the timeline as well (trace_recorder.h).
//
// Owned by the trainer, for its thread.
#pragma once

#include <array>
#include <cstdint>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/engine/observer.h"
#include "worker/engine/trace_recorder.h"

namespace muster {

class PhaseTimer {
 public:
  // Both outlive the timer.
  PhaseTimer(const Clock& clock, TraceRecorder& recorder);

  // Begins a step in phase kOther.
  void Restart();

  // From now on time belongs to `phase`; returns the one it belonged to.
  Phase Enter(Phase phase);

  // Since Restart, up to this call. The step goes on.
  PhaseSeconds Seconds();

  using Spent = std::array<absl::Duration, kPhases>;  // by Phase
  Spent Save();
  // Forgets the time since Save() gave this.
  void Restore(const Spent& spent);

  TraceRecorder& recorder() { return recorder_; }

 private:
  void Attribute();

  const Clock& clock_;
  TraceRecorder& recorder_;
  Phase current_ = Phase::kOther;
  absl::Duration since_;  // up to where time is attributed
  Spent spent_{};
};

// The phase for as long as it lives, and a span of its name. `micro_batch`: of which it is a pass; -1: none.
class PhaseScope {
 public:
  PhaseScope(PhaseTimer& timer, Phase phase, int64_t micro_batch = -1)
      : timer_(timer),
        outer_(timer.Enter(phase)),
        span_(timer.recorder(), micro_batch < 0 ? TraceSpan::Category::kPhase : TraceSpan::Category::kPass,
              PhaseName(phase), micro_batch) {}
  ~PhaseScope() { timer_.Enter(outer_); }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  PhaseTimer& timer_;
  const Phase outer_;
  const TraceScope span_;
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
