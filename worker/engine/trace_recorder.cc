#include "worker/engine/trace_recorder.h"

#include <utility>

#include "worker/tensor/device.h"

namespace muster {

const char* TraceCategoryName(TraceSpan::Category category) {
  switch (category) {
    case TraceSpan::Category::kStep:
      return "step";
    case TraceSpan::Category::kPass:
      return "pass";
    case TraceSpan::Category::kUnit:
      return "unit";
    case TraceSpan::Category::kPhase:
      return "phase";
  }
  return "unknown";
}

TraceRecorder::TraceRecorder(const Clock& clock, Device& device, TraceOptions options)
    : clock_(clock), device_(device), options_(options) {}

void TraceRecorder::Schedule(int64_t first_step, int64_t steps) {
  if (steps <= 0 || end_step_ > 0) return;
  report_ = {};
  report_.first_step = first_step;
  end_step_ = first_step + steps;
}

void TraceRecorder::BeginStep(int64_t step) {
  step_ = step;
  recording_ = step >= report_.first_step && step < end_step_;
  if (recording_ && step == report_.first_step) {
    report_.wall_offset = (clock_.Now() - absl::UnixEpoch()) - clock_.SinceBoot();
  }
  Enter(TraceSpan::Category::kStep, "step");
}

std::optional<TraceReport> TraceRecorder::EndStep(bool last) {
  Leave();
  if (!std::exchange(recording_, false)) return std::nullopt;
  if (step_ + 1 < end_step_ && !last) return std::nullopt;
  end_step_ = 0;
  report_.steps = step_ + 1 - report_.first_step;
  return std::exchange(report_, {});
}

void TraceRecorder::Enter(TraceSpan::Category category, const char* name, int64_t micro_batch) {
  device_.BeginRange(name);
  if (recording_) open_.push_back({category, name, micro_batch, clock_.SinceBoot()});
}

void TraceRecorder::Leave() {
  device_.EndRange();
  if (!recording_) return;
  const OpenSpan span = open_.back();
  open_.pop_back();
  if (report_.spans.size() == options_.most_spans) {
    ++report_.dropped_spans;
    return;
  }
  report_.spans.push_back({.name = span.name,
                           .category = span.category,
                           .step = step_,
                           .micro_batch = span.micro_batch,
                           .begin = span.begin,
                           .end = clock_.SinceBoot()});
}

}  // namespace muster
