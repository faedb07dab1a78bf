#include "common/plan/job_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/format_bytes.h"
#include "common/plan/arena.h"
#include "common/plan/parameter_shard.h"
#include "common/plan/partition.h"
#include "common/plan/pipeline_simulation.h"
#include "common/plan/schedule.h"
#include "common/plan/unit_cost.h"

namespace muster {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

int64_t ReplicaBatch(const LayoutRequest& job) { return job.global_batch / job.layout.data; }

// REQUIRES: the micro-batch divides the per-replica batch.
Layout WithMicroBatch(const LayoutRequest& job, int64_t micro_batch) {
  Layout layout = job.layout;
  layout.micro_batch = micro_batch;
  layout.accumulation_steps = ReplicaBatch(job) / micro_batch;
  return layout;
}

std::vector<UnitRange> StagesOf(const JobPlanRequest& request) {
  return request.stages.empty() ? BalancedStages(request.job.shape, request.job.layout) : request.stages;
}

// Whether a rank could need so much that its bytes might not fit an int64: far beyond any machine, and checked before
// anything is multiplied. A bound from above, in floating point: 64 bytes for each parameter (weight, two accumulators,
// three states, reduction) and 32 for each number that a unit could save.
bool TooLargeToCount(const ModelShape& shape, const Layout& layout) {
  const double rows = static_cast<double>(layout.micro_batch) * static_cast<double>(layout.sequence_length);
  const double widths = 16.0 * static_cast<double>(shape.hidden) + 4.0 * static_cast<double>(shape.ffn) +
                        4.0 * static_cast<double>(shape.vocab) + 16.0 * static_cast<double>(shape.heads);
  // A unit is in one chunk, which holds at most two groups of micro-batches.
  const double in_flight = static_cast<double>(std::min(2 * layout.pipeline, layout.accumulation_steps));
  const double saved = 32 * rows * widths * static_cast<double>(shape.units()) * in_flight;
  const double tokens = 64 * rows * static_cast<double>(layout.accumulation_steps);
  const double attention = 64 * static_cast<double>(layout.sequence_length) *
                           static_cast<double>(shape.hidden + shape.heads) *
                           static_cast<double>(layout.threads_per_rank);
  const double parameters = 64 * static_cast<double>(ParameterCount(shape));
  return saved + tokens + attention + parameters > 1e18;
}

bool EveryStageFits(const JobPlanRequest& request, const std::vector<UnitRange>& stages, const Layout& layout) {
  if (TooLargeToCount(request.job.shape, layout)) return false;
  for (int64_t stage = 0; stage < layout.pipeline; ++stage) {
    if (PlanStageMemory(request, layout, stages, stage).total_bytes > request.memory_per_rank_bytes) return false;
  }
  return true;
}

StagePlan DescribeStage(const ModelShape& shape, const Layout& layout, int64_t stage, UnitRange units) {
  StagePlan plan;
  plan.units = units;
  const std::vector<Unit> all = Units(shape);
  for (int64_t unit = units.first; unit < units.last; ++unit) plan.unit_names.push_back(all[unit].name());
  for (const ParameterInfo& parameter : ChunkParameters(shape, {units})) {
    for (const ShardPiece& piece : ShardOnTensorRank(shape, parameter, layout.tensor, 0).pieces) {
      plan.parameters += piece.elements();
    }
  }
  plan.in_flight = InFlightMicroBatches(layout, stage % layout.pipeline, stage / layout.pipeline);
  return plan;
}

void FillBubble(const ModelShape& shape, const std::vector<UnitRange>& stages, JobPlan* plan) {
  std::vector<StageTimes> times;
  for (double flops : StageCosts(UnitForwardFlopsPerToken(shape, plan->layout.sequence_length), stages)) {
    times.push_back({flops, 2 * flops});
  }
  const PipelineTiming timing = SimulatePipeline(times, plan->layout.interleave, plan->layout.accumulation_steps);
  plan->bubble_of_ideal = timing.bubble_of_ideal;
  plan->bubble_of_total = timing.bubble_of_total;
}

Problem OverMemory(const JobPlanRequest& request, const RankPlan& fullest, int64_t ranks_over) {
  Problem problem;
  problem.code = "RANK_OVER_MEMORY";
  problem.field = "resources.memory_per_rank";
  problem.message = absl::StrCat("rank ", fullest.rank, " needs ", FormatBytes(fullest.total_bytes), " (arena ",
                                 FormatBytes(fullest.arena_bytes), ", outside ", FormatBytes(fullest.outside_bytes),
                                 "), ", FormatBytes(fullest.total_bytes - request.memory_per_rank_bytes),
                                 " more than its ", FormatBytes(request.memory_per_rank_bytes),
                                 ranks_over > 1 ? absl::StrCat("; ", ranks_over, " ranks are over") : "");
  const int64_t fitting = ChooseMicroBatch(request);
  if (fitting > 0) {
    const Layout layout = WithMicroBatch(request.job, fitting);
    problem.suggestion = absl::StrCat("training.micro_batch ", fitting, " fits, with ", layout.accumulation_steps,
                                      " micro-batches for the same global batch");
  } else {
    problem.suggestion = absl::StrCat("no micro-batch fits; give every rank ", FormatBytes(fullest.total_bytes),
                                      ", use more pipeline stages, or a smaller model or sequence");
  }
  return problem;
}

void FillMemory(const JobPlanRequest& request, const std::vector<UnitRange>& stages, JobPlan* plan) {
  const int64_t ranks_per_stage = plan->layout.tensor * plan->layout.data;
  const RankPlan* fullest = nullptr;
  int64_t ranks_over = 0;
  plan->ranks.reserve(plan->layout.ranks());
  for (int64_t stage = 0; stage < plan->layout.pipeline; ++stage) {
    RankPlan rank = PlanStageMemory(request, plan->layout, stages, stage);
    const int64_t first_rank = rank.rank;
    for (int64_t i = 0; i < ranks_per_stage; ++i) {
      rank.rank = first_rank + i;
      plan->ranks.push_back(rank);
    }
    const RankPlan& first = plan->ranks[first_rank];
    if (fullest == nullptr || first.total_bytes > fullest->total_bytes) fullest = &first;
    if (first.total_bytes > request.memory_per_rank_bytes) ranks_over += ranks_per_stage;
  }
  if (request.memory_per_rank_bytes > 0 && ranks_over > 0) {
    plan->problems.push_back(OverMemory(request, *fullest, ranks_over));
  }
}

// Fills the micro-batch that was left to be chosen; false, with a problem, when it cannot be.
bool FillMicroBatch(const JobPlanRequest& request, JobPlan* plan) {
  int64_t micro_batch = request.job.layout.micro_batch;
  if (micro_batch == 0 && request.memory_per_rank_bytes <= 0) {
    plan->problems.push_back({"MEMORY_NOT_KNOWN", "training.micro_batch",
                              "auto needs the memory of a rank, and neither the job nor the device tells it",
                              "set resources.memory_per_rank (a coordinator takes it from its workers), or "
                              "training.micro_batch to a divisor of the per-replica batch"});
    return false;
  }
  if (micro_batch == 0) micro_batch = ChooseMicroBatch(request);
  // The smallest does not fit either, and the plan says by how much.
  if (micro_batch == 0) micro_batch = LegalMicroBatches(request.job).front();
  plan->layout = WithMicroBatch(request.job, micro_batch);
  if (!TooLargeToCount(request.job.shape, plan->layout)) return true;
  plan->problems.push_back({"TOO_LARGE_TO_COUNT", "training.micro_batch",
                            absl::StrCat(micro_batch, " sequences of ", plan->layout.sequence_length,
                                         " tokens with this model are beyond what any device holds"),
                            "use a smaller model, sequence or micro-batch"});
  return false;
}

}  // namespace

OutsideAllowance OutsideAllowanceOf(DeviceKind device) {
  if (device == DeviceKind::kCpu) {
    return {96 * kMiB, "fixed allowance for a CPU rank: program, libraries, thread stacks, Gloo's buffers"};
  }
  return {2048 * kMiB, "fixed allowance for a CUDA rank, not yet measured: context, libraries, NCCL's buffers"};
}

std::vector<UnitRange> BalancedStages(const ModelShape& shape, const Layout& layout) {
  auto cut = PartitionUnits(UnitForwardFlopsPerToken(shape, layout.sequence_length), layout.virtual_stages());
  MUSTER_CHECK(cut.ok(), cut.status().ToString());
  return *std::move(cut);
}

RankPlan PlanStageMemory(const JobPlanRequest& request, const Layout& layout, const std::vector<UnitRange>& stages,
                         int64_t stage) {
  RankPlan plan;
  plan.rank = RankOf(layout, {0, 0, stage});
  plan.stage = stage;
  const Ledger ledger = BuildLedger(request.job.shape, layout, ChunksOf(layout, stages, stage), plan.rank);
  const ArenaPlan arena = PlaceLedger(ledger, MemorySpace::kDevice);
  plan.arena_bytes = arena.bytes;
  plan.arena_lower_bound_bytes = arena.lower_bound_bytes;
  plan.pinned_bytes = PlaceLedger(ledger, MemorySpace::kPinned).bytes;
  plan.host_bytes = PlaceLedger(ledger, MemorySpace::kHost).bytes;
  plan.outside_bytes = OutsideAllowanceOf(request.device).bytes;
  plan.total_bytes = plan.arena_bytes + plan.outside_bytes;
  if (request.device == DeviceKind::kCpu) plan.total_bytes += plan.pinned_bytes + plan.host_bytes;
  for (int i = 0; i < kMemoryCategories; ++i) plan.memory[i] = ledger.bytes(static_cast<MemoryCategory>(i));
  return plan;
}

int64_t ChooseMicroBatch(const JobPlanRequest& request) {
  const std::vector<UnitRange> stages = StagesOf(request);
  const std::vector<int64_t> legal = LegalMicroBatches(request.job);
  const auto fits = [&](int64_t micro_batch) {
    return EveryStageFits(request, stages, WithMicroBatch(request.job, micro_batch));
  };
  // Those that fill the pipeline come first. In-flight counts are nearly equal over them, so memory grows with the
  // micro-batch and the largest that fits is found by bisection.
  const auto filling_end = std::partition_point(legal.begin(), legal.end(), [&](int64_t micro_batch) {
    return ReplicaBatch(request.job) / micro_batch >= request.job.layout.pipeline;
  });
  const auto first_over = std::partition_point(legal.begin(), filling_end, fits);
  if (first_over != legal.begin()) return *(first_over - 1);
  for (auto micro_batch = legal.end(); micro_batch != filling_end;) {
    if (fits(*--micro_batch)) return *micro_batch;
  }
  return 0;
}

JobPlan BuildJobPlan(const JobPlanRequest& asked) {
  JobPlan plan;
  plan.layout = asked.job.layout;
  plan.memory_per_rank_bytes = asked.memory_per_rank_bytes;
  plan.outside_source = OutsideAllowanceOf(asked.device).source;
  if (CheckModelShape(asked.job.shape).empty()) {
    plan.parameters = ParameterCount(asked.job.shape);
    plan.model_flops_per_token = ModelFlopsPerToken(asked.job.shape, asked.job.layout.sequence_length);
  }
  plan.problems = CheckLayout(asked.job);
  if (!plan.problems.empty()) return plan;

  JobPlanRequest request = asked;
  Layout& layout = request.job.layout;
  if (layout.data == 0) layout.data = request.job.ranks / (layout.tensor * layout.pipeline);
  if (!FillMicroBatch(request, &plan)) return plan;
  const std::vector<UnitRange> stages = StagesOf(request);
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    plan.stages.push_back(DescribeStage(request.job.shape, plan.layout, static_cast<int64_t>(stage), stages[stage]));
  }
  FillBubble(request.job.shape, stages, &plan);
  FillMemory(request, stages, &plan);
  plan.feasible = plan.problems.empty();
  return plan;
}

}  // namespace muster
