// In which order a stage runs the passes of a step's micro-batches. Pure functions: the engine runs what they list, and
// the planner's simulation (pipeline_simulation.h) runs the same on paper.
#pragma once

#include <cstdint>
#include <vector>

namespace muster {

struct PassAction {
  enum class Kind { kForward, kBackward };
  Kind kind = Kind::kForward;
  int64_t micro_batch = 0;
};

// 1F1B (Narayanan et al., SC21, figure 4 top): in_flight - 1 forwards, then one forward and one backward in turn, then
// the backwards that are left. Never more than in_flight micro-batches are between their forward and their backward.
// InFlightMicroBatches (layout.h) says how many a stage holds. REQUIRES: 1 <= in_flight <= micro_batches.
std::vector<PassAction> OneForwardOneBackward(int64_t micro_batches, int64_t in_flight);

}  // namespace muster
