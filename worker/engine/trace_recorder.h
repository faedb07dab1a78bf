// Records the timeline of some steps of one rank, as TrainerObserver::OnTrace hands it on: spans of steps, phases,
// passes and units, nested as they are in the code.
//
// Owned by the engine of a rank, for the trainer's thread. While it does not record, a scope costs a branch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "worker/engine/observer.h"

namespace muster {

class Device;  // worker/tensor/device.h

struct TraceOptions {
  // Kept of one request, about a hundred bytes each. What comes after them is counted and dropped: a timeline that is
  // cut short is better than a rank that runs out of memory.
  size_t most_spans = 200'000;
};

class TraceRecorder {
 public:
  // `device` gets the same ranges, for external profilers, whether this records or not. Both outlive the recorder.
  TraceRecorder(const Clock& clock, Device& device, TraceOptions options = {});

  // Records `steps` steps from `first_step`, the next to begin. Does nothing while it records, or for steps 0.
  void Schedule(int64_t first_step, int64_t steps);

  // Around each step; REQUIRES: every span within has ended. EndStep gives the report after the last step that was
  // asked for, or when `last` says that no more come.
  void BeginStep(int64_t step);
  std::optional<TraceReport> EndStep(bool last);

  // REQUIRES: Leave is called in the reverse order of Enter, and `name` lives until then.
  void Enter(TraceSpan::Category category, const char* name, int64_t micro_batch = -1);
  void Leave();

 private:
  struct OpenSpan {
    TraceSpan::Category category;
    const char* name;
    int64_t micro_batch;
    absl::Duration begin;
  };

  const Clock& clock_;
  Device& device_;
  const TraceOptions options_;

  TraceReport report_;
  int64_t end_step_ = 0;    // one behind the last; 0: nothing is recorded
  int64_t step_ = 0;        // that began last
  bool recording_ = false;  // it is one of those
  std::vector<OpenSpan> open_;
};

// A span for as long as it lives.
class TraceScope {
 public:
  TraceScope(TraceRecorder& recorder, TraceSpan::Category category, const char* name, int64_t micro_batch = -1)
      : recorder_(recorder) {
    recorder_.Enter(category, name, micro_batch);
  }
  ~TraceScope() { recorder_.Leave(); }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  TraceRecorder& recorder_;
};

}  // namespace muster
