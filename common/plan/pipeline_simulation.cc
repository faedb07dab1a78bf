#include "common/plan/pipeline_simulation.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/plan/schedule.h"

namespace muster {
namespace {

constexpr double kNotDone = -1;

// The ends of all passes, found by running every rank's list as far as what it waits for allows.
class Simulation {
 public:
  Simulation(const std::vector<StageTimes>& stages, const Layout& layout, double transfer)
      : stages_(stages), layout_(layout), transfer_(transfer) {
    for (int64_t rank = 0; rank < layout.pipeline; ++rank) lists_.push_back(StepPasses(layout, rank));
    next_.assign(lists_.size(), 0);
    free_at_.assign(lists_.size(), 0);
    forward_ends_.assign(stages.size(), std::vector<double>(layout.accumulation_steps, kNotDone));
    backward_ends_ = forward_ends_;
  }

  double Run() {
    bool progress = true;
    while (progress) {
      progress = false;
      for (size_t rank = 0; rank < lists_.size(); ++rank) {
        while (next_[rank] < lists_[rank].size() && Start(rank, lists_[rank][next_[rank]])) {
          ++next_[rank];
          progress = true;
        }
      }
    }
    for (size_t rank = 0; rank < lists_.size(); ++rank) {
      MUSTER_CHECK(next_[rank] == lists_[rank].size(), "rank ", rank, " waits for ever");
    }
    return *std::max_element(free_at_.begin(), free_at_.end());
  }

 private:
  // When what the pass reads has arrived, or kNotDone.
  double Ready(size_t stage, const PassAction& pass) const {
    if (pass.forward() && stage == 0) return 0;
    if (!pass.forward() && stage + 1 == stages_.size()) return forward_ends_[stage][pass.micro_batch];
    const double end =
        pass.forward() ? forward_ends_[stage - 1][pass.micro_batch] : backward_ends_[stage + 1][pass.micro_batch];
    return end == kNotDone ? kNotDone : end + transfer_;
  }

  bool Start(size_t rank, const PassAction& pass) {
    const size_t stage = static_cast<size_t>(pass.chunk * layout_.pipeline) + rank;
    const double ready = Ready(stage, pass);
    if (ready == kNotDone) return false;
    free_at_[rank] =
        std::max(free_at_[rank], ready) + (pass.forward() ? stages_[stage].forward : stages_[stage].backward);
    (pass.forward() ? forward_ends_ : backward_ends_)[stage][pass.micro_batch] = free_at_[rank];
    return true;
  }

  const std::vector<StageTimes>& stages_;
  const Layout& layout_;
  const double transfer_;
  std::vector<std::vector<PassAction>> lists_;      // by rank
  std::vector<size_t> next_;                        // by rank, in its list
  std::vector<double> free_at_;                     // by rank
  std::vector<std::vector<double>> forward_ends_;   // (stage, micro-batch)
  std::vector<std::vector<double>> backward_ends_;  // (stage, micro-batch)
};

double TotalTime(const std::vector<StageTimes>& stages, Layout layout, int64_t micro_batches, double transfer) {
  layout.accumulation_steps = micro_batches;
  return Simulation(stages, layout, transfer).Run();
}

}  // namespace

PipelineTiming SimulatePipeline(const std::vector<StageTimes>& stages, int64_t interleave, int64_t micro_batches,
                                double transfer) {
  MUSTER_CHECK(!stages.empty() && static_cast<int64_t>(stages.size()) % interleave == 0);
  Layout layout;
  layout.interleave = interleave;
  layout.pipeline = static_cast<int64_t>(stages.size()) / interleave;
  PipelineTiming timing;
  if (micro_batches <= kSimulatedMicroBatches) {
    timing.total = TotalTime(stages, layout, micro_batches, transfer);
  } else {
    // Whole groups of micro-batches, as the interleaved schedule has them.
    const int64_t half = kSimulatedMicroBatches / 2 / layout.pipeline * layout.pipeline;
    const double first_half = TotalTime(stages, layout, half, transfer);
    timing.total = TotalTime(stages, layout, 2 * half, transfer);
    const double pace = (timing.total - first_half) / static_cast<double>(half);
    timing.total += pace * static_cast<double>(micro_batches - 2 * half);
  }
  for (const StageTimes& stage : stages) {
    timing.ideal += static_cast<double>(micro_batches) * (stage.forward + stage.backward);
  }
  timing.ideal /= static_cast<double>(layout.pipeline);
  if (timing.total > 0 && timing.ideal > 0) {
    timing.bubble_of_ideal = (timing.total - timing.ideal) / timing.ideal;
    timing.bubble_of_total = (timing.total - timing.ideal) / timing.total;
  }
  return timing;
}

double UniformBubbleOfIdeal(int64_t ranks, int64_t micro_batches, int64_t chunks) {
  return static_cast<double>(ranks - 1) / static_cast<double>(micro_batches * chunks);
}

double UniformBubbleOfTotal(int64_t ranks, int64_t micro_batches, int64_t chunks) {
  return static_cast<double>(ranks - 1) / static_cast<double>(micro_batches * chunks + ranks - 1);
}

}  // namespace muster
