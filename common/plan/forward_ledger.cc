#include "common/plan/forward_ledger.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace muster {
namespace {

bool IsForTraining(const LedgerEntry& entry) {
  switch (entry.category) {
    case MemoryCategory::kGradients:
    case MemoryCategory::kOptimizerState:
    case MemoryCategory::kCommunication:
      return true;
    case MemoryCategory::kStaging:  // one batch is enough
      return entry.name != "staging/validation";
    default:
      return false;
  }
}

}  // namespace

Ledger BuildForwardLedger(const ModelShape& shape, const Layout& layout) {
  MUSTER_CHECK(layout.ranks() == 1 && layout.accumulation_steps == 1 && layout.recompute == Recompute::kNone,
               "a forward ledger is of one rank and one micro-batch, without recomputation");
  Ledger training = BuildLedger(shape, layout, {{0, shape.units()}}, /*rank=*/0);
  const int64_t units = shape.units();  // forward of unit i is tick i, its backward tick 2 units - 1 - i
  Ledger forward;
  forward.ticks = units;
  for (LedgerEntry& entry : training.entries) {
    Lifetime& lifetime = entry.lifetime;
    if (IsForTraining(entry) || lifetime.first_tick >= units) {
      forward.left_out.push_back(std::move(entry.name));
      continue;
    }
    const bool all_passes = lifetime.first_tick == 0 && lifetime.last_tick >= 2 * units - 1;
    const bool kept_for_backward = lifetime.last_tick >= units && !all_passes;
    // Kept until the backward of unit i, it is read by unit i and, as its output, by the one behind it.
    if (kept_for_backward) lifetime.last_tick = 2 * units - 1 - lifetime.last_tick + 1;
    lifetime.last_tick = std::min(lifetime.last_tick, units - 1);
    MUSTER_CHECK(lifetime.first_tick <= lifetime.last_tick, entry.name, " ends before it begins");
    forward.entries.push_back(std::move(entry));
  }
  return forward;
}

}  // namespace muster
