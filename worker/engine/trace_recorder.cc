#include "worker/engine/trace_recorder.h"

#include <utility>

namespace muster {

void TraceRecorder::Schedule(int64_t first_step, int64_t steps) {
  if (steps <= 0 || end_step_ > 0) return;
  report_ = {.first_step = first_step};
  end_step_ = first_step + steps;
}

void TraceRecorder::BeforeStep(int64_t step) {
  if (Covers(step)) timer_.Record(&report_.spans, step);
}

std::optional<TraceReport> TraceRecorder::AfterStep(int64_t step, bool last) {
  if (!Covers(step)) return std::nullopt;
  timer_.Record(nullptr, 0);
  if (step + 1 < end_step_ && !last) return std::nullopt;
  end_step_ = 0;
  report_.steps = step + 1 - report_.first_step;
  return std::exchange(report_, {});
}

}  // namespace muster
