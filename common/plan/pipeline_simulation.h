// How long a pipelined step takes and how much of it is waiting: the schedule of schedule.h run on paper. Pure
// functions.
#pragma once

#include <cstdint>
#include <vector>

namespace muster {

// Seconds, or any one unit of time.
struct StageTimes {
  double forward = 0;   // of one micro-batch
  double backward = 0;  // of one micro-batch
};

struct PipelineTiming {
  double total = 0;            // from the first forward to the end of the last backward
  double ideal = 0;            // the work of all stages, spread evenly over the ranks without waiting
  double bubble_of_ideal = 0;  // (total - ideal) / ideal
  double bubble_of_total = 0;  // (total - ideal) / total
};

// Micro-batches that are simulated one by one; a longer step goes on at the pace of their second half, when the
// pipeline has long been full.
inline constexpr int64_t kSimulatedMicroBatches = 2048;

// `stages` are the virtual stages in model order: `interleave` chunks on each of the pipeline's ranks, chunk c of rank
// r is stages[c * pipeline + r]. `transfer` is what a micro-batch takes from one stage to the next, in both directions,
// beside the computation.
// REQUIRES: interleave divides the number of stages and, above 1, the pipeline's ranks divide micro_batches.
PipelineTiming SimulatePipeline(const std::vector<StageTimes>& stages, int64_t interleave, int64_t micro_batches,
                                double transfer = 0);

// Closed forms for equal stages: (p - 1) / (m v) and (p - 1) / (m v + p - 1), v chunks a rank (Narayanan et al., SC21,
// section 2.2).
double UniformBubbleOfIdeal(int64_t ranks, int64_t micro_batches, int64_t chunks = 1);
double UniformBubbleOfTotal(int64_t ranks, int64_t micro_batches, int64_t chunks = 1);

}  // namespace muster
