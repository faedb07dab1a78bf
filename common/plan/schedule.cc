#include "common/plan/schedule.h"

#include <algorithm>

#include "common/base/check.h"

namespace muster {
namespace {

// Micro-batches after which a schedule repeats itself in groups of `pipeline`: a rank warms up for at most one and a
// half groups.
constexpr int64_t kGroupsUntilSteady = 4;

// The k-th forward, or backward with `reverse`, of a step: a group of micro-batches goes through one chunk after the
// other. The last group may be a smaller one.
PassAction Pass(const Layout& layout, int64_t micro_batches, int64_t k, bool reverse) {
  const int64_t group = k / layout.virtual_stages();
  const int64_t first = group * layout.pipeline;
  const int64_t size = std::min(layout.pipeline, micro_batches - first);
  const int64_t within = k - group * layout.virtual_stages();
  const int64_t chunk = within / size;
  return {.kind = reverse ? PassAction::Kind::kBackward : PassAction::Kind::kForward,
          .micro_batch = first + within % size,
          .chunk = reverse ? layout.interleave - 1 - chunk : chunk};
}

// Forwards before the first backward, beside the one that comes directly before it.
int64_t WarmUpPasses(const Layout& layout, int64_t pipeline_rank) {
  const int64_t ranks_behind = layout.pipeline - 1 - pipeline_rank;
  if (layout.interleave == 1) return ranks_behind;
  return 2 * ranks_behind + (layout.interleave - 1) * layout.pipeline;
}

}  // namespace

std::vector<PassAction> StepPasses(const Layout& layout, int64_t pipeline_rank) {
  MUSTER_CHECK(0 <= pipeline_rank && pipeline_rank < layout.pipeline, pipeline_rank, " of ", layout.pipeline);
  MUSTER_CHECK(layout.interleave == 1 || layout.accumulation_steps % layout.pipeline == 0, layout.accumulation_steps,
               " micro-batches in groups of ", layout.pipeline);
  const int64_t micro_batches = layout.accumulation_steps;
  const int64_t passes = micro_batches * layout.interleave;
  std::vector<PassAction> actions;
  actions.reserve(static_cast<size_t>(2 * passes));
  int64_t forwards = 0;
  const auto forward = [&] { actions.push_back(Pass(layout, micro_batches, forwards++, /*reverse=*/false)); };
  while (forwards < std::min(WarmUpPasses(layout, pipeline_rank), passes)) forward();
  for (int64_t backwards = 0; backwards < passes; ++backwards) {
    if (forwards < passes) forward();
    actions.push_back(Pass(layout, micro_batches, backwards, /*reverse=*/true));
  }
  return actions;
}

std::vector<PassAction> EvaluationPasses(const Layout& layout, int64_t micro_batches) {
  std::vector<PassAction> actions;
  for (int64_t k = 0; k < micro_batches * layout.interleave; ++k) {
    actions.push_back(Pass(layout, micro_batches, k, /*reverse=*/false));
  }
  return actions;
}

int64_t InFlightMicroBatches(const Layout& layout, int64_t pipeline_rank, int64_t chunk) {
  Layout enough = layout;
  enough.accumulation_steps = std::min(layout.accumulation_steps, kGroupsUntilSteady * layout.pipeline);
  int64_t in_flight = 0;
  int64_t most = 0;
  for (const PassAction& action : StepPasses(enough, pipeline_rank)) {
    if (action.chunk != chunk) continue;
    in_flight += action.forward() ? 1 : -1;
    most = std::max(most, in_flight);
  }
  return most;
}

}  // namespace muster
