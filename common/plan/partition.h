// Cuts the units of a model into pipeline stages. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/layout.h"

namespace muster {

// Whether `stage` may run `units`: the memory cap of a stage, which depends on the stage because an early one holds
// more micro-batches. A run that does not fit must not fit either when a unit is added to it.
using StageFits = std::function<bool(int64_t stage, UnitRange units)>;

// The cut into `stages` runs of at least one unit whose most expensive run is cheapest; of those the one with the
// smallest sum of squares (so that the other stages are even as well), and of those the one whose last cuts are
// earliest. Costs are in any one unit, not negative. By dynamic programming.
//
// INVALID_ARGUMENT when there are fewer units than stages, RESOURCE_EXHAUSTED when no cut passes `fits` (empty: all
// do).
absl::StatusOr<std::vector<UnitRange>> PartitionUnits(const std::vector<double>& unit_costs, int64_t stages,
                                                      const StageFits& fits = nullptr);

// The cost of each run of `stages`.
std::vector<double> StageCosts(const std::vector<double>& unit_costs, const std::vector<UnitRange>& stages);

}  // namespace muster
