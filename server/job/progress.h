// How far a job is: folds the reports of its ranks into Job.progress and Job.ranks. Holds what rates are computed from.
#pragma once

#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/worker.pb.h"

namespace muster {

// Thread-compatible. Every method changes `job` in place.
class ProgressTracker {
 public:
  // A new attempt was placed: no rank of it has said anything yet.
  void BeginAttempt(v1::Job* job);

  // Tokens of steps up to this one are counted already: what the coordinator knew before it was started again.
  void CountedUpTo(int64_t step) { counted_step_ = step; }

  void OnStarted(int64_t rank, const v1::RankStarted& report, v1::Job* job);

  // Returns true when it is the first step that this attempt reports.
  bool OnStep(int64_t rank, const v1::StepReport& report, absl::Time now, v1::Job* job);

  // Every rank reports every validation; returns true for the first report of each.
  bool OnValidation(const v1::ValidationReport& report, v1::Job* job);

  // What its agent sees of a rank. Returns whether that changed anything.
  bool OnObserved(const v1::ObservedRank& rank, v1::Job* job);

  // Of the steps reported last; 0 before the first.
  double step_seconds() const { return step_seconds_; }
  // Furthest step that the current attempt has reported; 0 before the first.
  int64_t furthest_step() const { return furthest_step_; }

 private:
  bool any_step_ = false;
  absl::Time first_step_began_;
  int64_t first_step_ = 0;
  int64_t attempt_tokens_ = 0;
  int64_t furthest_step_ = 0;
  int64_t counted_step_ = 0;
  double step_seconds_ = 0;
  std::map<int64_t, v1::PhaseSeconds> newest_phases_;  // by rank
};

}  // namespace muster
