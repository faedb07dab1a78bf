// Tells which field of the job to raise when training waits for its data.
//
// Waits in most steps mean that samples are read more slowly than they are used: more threads help. Waits in few steps
// mean that the storage stalls now and then: more steps in memory bridge that.
//
// Owned by the trainer, for its thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muster {

class DataWaitAdvisor {
 public:
  static constexpr int64_t kWindowSteps = 50;
  static constexpr double kTolerated = 0.05;  // share of the wall time of a window
  static constexpr double kNoticed = 0.01;  // share of a step's wall time from which the step counts as one that waited

  DataWaitAdvisor(int64_t prefetch_steps, int64_t loader_threads)
      : prefetch_steps_(prefetch_steps), loader_threads_(loader_threads) {}

  // After every step. The advice, once a window of steps has waited too long; then only again when a later window waits
  // twice as large a share.
  std::optional<std::string> AddStep(double wait_seconds, double wall_seconds);

 private:
  const int64_t prefetch_steps_;
  const int64_t loader_threads_;
  int64_t steps_ = 0;  // of the window
  int64_t steps_that_waited_ = 0;
  double wait_seconds_ = 0;
  double wall_seconds_ = 0;
  double advised_share_ = kTolerated / 2;
};

}  // namespace muster
