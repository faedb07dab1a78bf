#include "worker/engine/phase_timer.h"

namespace muster {

const char* PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kOptimizer:
      return "optimizer";
    case Phase::kCommExposed:
      return "comm_exposed";
    case Phase::kBubble:
      return "bubble";
    case Phase::kDataWait:
      return "data_wait";
    case Phase::kCheckpoint:
      return "checkpoint";
    case Phase::kOther:
      return "other";
  }
  return "unknown";
}

PhaseTimer::PhaseTimer(const Clock& clock, TraceRecorder& recorder)
    : clock_(clock), recorder_(recorder), since_(clock.SinceBoot()) {}

void PhaseTimer::Restart() {
  spent_.fill(absl::ZeroDuration());
  current_ = Phase::kOther;
  since_ = clock_.SinceBoot();
}

Phase PhaseTimer::Enter(Phase phase) {
  Attribute();
  const Phase outer = current_;
  current_ = phase;
  return outer;
}

PhaseSeconds PhaseTimer::Seconds() {
  Attribute();
  PhaseSeconds seconds{};
  for (size_t i = 0; i < seconds.size(); ++i) seconds[i] = absl::ToDoubleSeconds(spent_[i]);
  return seconds;
}

PhaseTimer::Spent PhaseTimer::Save() {
  Attribute();
  return spent_;
}

void PhaseTimer::Restore(const Spent& spent) {
  Attribute();
  spent_ = spent;
}

void PhaseTimer::Attribute() {
  const absl::Duration now = clock_.SinceBoot();
  spent_[static_cast<size_t>(current_)] += now - since_;
  since_ = now;
}

}  // namespace muster
