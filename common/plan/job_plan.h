// What a job will take: the whole plan of it, from the ledger that the engine binds its memory to. Pure functions;
// equal requests give equal plans on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/layout.h"
#include "common/plan/layout_check.h"
#include "common/plan/ledger.h"
#include "common/plan/problem.h"

namespace muster {

enum class DeviceKind { kCpu, kCuda };

// Memory of a rank that is not in its arena: code, libraries, stacks, contexts, communicators.
struct OutsideAllowance {
  int64_t bytes = 0;
  std::string source;  // where the number comes from, for people
};
OutsideAllowance OutsideAllowanceOf(DeviceKind device);

struct JobPlanRequest {
  LayoutRequest job;
  std::vector<UnitRange> stages;      // virtual stages in model order; empty: BalancedStages
  int64_t memory_per_rank_bytes = 0;  // what a rank may take in all; 0: no limit is known and none is checked
  DeviceKind device = DeviceKind::kCpu;
};

// One virtual stage: chunk c of rank r of the pipeline is number c * pipeline + r.
struct StagePlan {
  UnitRange units;
  std::vector<std::string> unit_names;
  int64_t parameters = 0;  // held by one rank of the stage, a tied copy included
  int64_t in_flight = 0;   // micro-batches whose activations it holds at the most
};

struct RankPlan {
  int64_t rank = 0;
  int64_t stage = 0;                    // its rank of the pipeline
  int64_t arena_bytes = 0;              // the device arena, as placed
  int64_t arena_lower_bound_bytes = 0;  // the most that is live at once
  int64_t pinned_bytes = 0;
  int64_t host_bytes = 0;
  int64_t outside_bytes = 0;
  int64_t total_bytes = 0;  // what counts against the limit: on the CPU all of it, on CUDA arena and outside
  std::array<int64_t, kMemoryCategories> memory{};  // by MemoryCategory; tensors that share memory count each
};

struct JobPlan {
  bool feasible = false;
  std::vector<Problem> problems;  // why not
  Layout layout;                  // with data, micro-batch and accumulation filled in where they could be
  int64_t parameters = 0;         // a tied weight counts once
  double model_flops_per_token = 0;
  std::vector<StagePlan> stages;  // virtual stages in model order; empty, as what follows, when the layout is illegal
  std::vector<RankPlan> ranks;    // in rank order
  double bubble_of_ideal = 0;     // of the simulated schedule, stages weighted by their FLOPs
  double bubble_of_total = 0;
  int64_t memory_per_rank_bytes = 0;  // the limit; 0: not known
  std::string outside_source;
};

// `auto` micro-batches are chosen (ChooseMicroBatch). TOO_LARGE_TO_COUNT when bytes could pass the range of integers;
// MEMORY_NOT_KNOWN when `auto` has nothing to go by; RANK_OVER_MEMORY when a rank takes more than its limit, with the
// largest micro-batch that does fit.
JobPlan BuildJobPlan(const JobPlanRequest& request);

// The cut whose stages cost the same forward FLOPs as nearly as can be. REQUIRES: the layout passes its checks.
std::vector<UnitRange> BalancedStages(const ModelShape& shape, const Layout& layout);

// The largest divisor of the per-replica batch with which every rank fits its memory; of those with at least as many
// micro-batches as stages, if there are any: fewer leave stages idle. 0 when none fits.
// REQUIRES: the layout passes its checks; memory_per_rank_bytes > 0.
int64_t ChooseMicroBatch(const JobPlanRequest& request);

// The arena on this device kind of a rank of the pipeline's `stage`, of all virtual stages in model order; all ranks of
// a stage are alike, because the ledger gives each what the largest of them needs. `rank` of the result is its first.
RankPlan PlanStageMemory(const JobPlanRequest& request, const Layout& layout, const std::vector<UnitRange>& stages,
                         int64_t stage);

}  // namespace muster
