#include "common/plan/pipeline_simulation.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/plan/schedule.h"

namespace muster {
namespace {

constexpr double kNotDone = -1;

// The ends of all operations, found by running every stage's list as far as what it waits for allows.
class Simulation {
 public:
  Simulation(const std::vector<StageTimes>& stages, int64_t micro_batches, double transfer)
      : stages_(stages), transfer_(transfer) {
    for (size_t stage = 0; stage < stages.size(); ++stage) {
      const int64_t stages_left = static_cast<int64_t>(stages.size() - stage);
      lists_.push_back(OneForwardOneBackward(micro_batches, std::min(micro_batches, stages_left)));
      forward_ends_.emplace_back(micro_batches, kNotDone);
      backward_ends_.emplace_back(micro_batches, kNotDone);
    }
    next_.assign(stages.size(), 0);
    free_at_.assign(stages.size(), 0);
  }

  double Run() {
    bool progress = true;
    while (progress) {
      progress = false;
      for (size_t stage = 0; stage < stages_.size(); ++stage) {
        while (next_[stage] < lists_[stage].size() && Start(stage, lists_[stage][next_[stage]])) {
          ++next_[stage];
          progress = true;
        }
      }
    }
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      MUSTER_CHECK(next_[stage] == lists_[stage].size(), "stage ", stage, " waits for ever");
    }
    return *std::max_element(free_at_.begin(), free_at_.end());
  }

 private:
  // When what the operation reads has arrived, or kNotDone.
  double Ready(size_t stage, const PassAction& operation) const {
    const int64_t micro_batch = operation.micro_batch;
    if (operation.kind == PassAction::Kind::kForward) {
      if (stage == 0) return 0;
      const double end = forward_ends_[stage - 1][micro_batch];
      return end == kNotDone ? kNotDone : end + transfer_;
    }
    if (stage + 1 == stages_.size()) return forward_ends_[stage][micro_batch];
    const double end = backward_ends_[stage + 1][micro_batch];
    return end == kNotDone ? kNotDone : end + transfer_;
  }

  bool Start(size_t stage, const PassAction& operation) {
    const double ready = Ready(stage, operation);
    if (ready == kNotDone) return false;
    const bool forward = operation.kind == PassAction::Kind::kForward;
    free_at_[stage] = std::max(free_at_[stage], ready) + (forward ? stages_[stage].forward : stages_[stage].backward);
    (forward ? forward_ends_ : backward_ends_)[stage][operation.micro_batch] = free_at_[stage];
    return true;
  }

  const std::vector<StageTimes>& stages_;
  const double transfer_;
  std::vector<std::vector<PassAction>> lists_;
  std::vector<std::vector<double>> forward_ends_;   // (stage, micro-batch)
  std::vector<std::vector<double>> backward_ends_;  // (stage, micro-batch)
  std::vector<size_t> next_;                        // by stage, in its list
  std::vector<double> free_at_;                     // by stage
};

}  // namespace

PipelineTiming SimulatePipeline(const std::vector<StageTimes>& stages, int64_t micro_batches, double transfer) {
  MUSTER_CHECK(!stages.empty());
  const int64_t simulated = std::min(micro_batches, kSimulatedMicroBatches);
  PipelineTiming timing;
  timing.total = Simulation(stages, simulated, transfer).Run();
  if (simulated < micro_batches) {
    const double half = Simulation(stages, simulated / 2, transfer).Run();
    const double pace = (timing.total - half) / static_cast<double>(simulated - simulated / 2);
    timing.total += pace * static_cast<double>(micro_batches - simulated);
  }
  for (const StageTimes& stage : stages) {
    timing.ideal += static_cast<double>(micro_batches) * (stage.forward + stage.backward);
  }
  timing.ideal /= static_cast<double>(stages.size());
  if (timing.total > 0 && timing.ideal > 0) {
    timing.bubble_of_ideal = (timing.total - timing.ideal) / timing.ideal;
    timing.bubble_of_total = (timing.total - timing.ideal) / timing.total;
  }
  return timing;
}

double UniformBubbleOfIdeal(int64_t stages, int64_t micro_batches, int64_t chunks) {
  return static_cast<double>(stages - 1) / static_cast<double>(micro_batches * chunks);
}

double UniformBubbleOfTotal(int64_t stages, int64_t micro_batches, int64_t chunks) {
  return static_cast<double>(stages - 1) / static_cast<double>(micro_batches * chunks + stages - 1);
}

}  // namespace muster
