#include "worker/engine/rank_engine.h"

#include <utility>

#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/plan/ledger.h"
#include "worker/comm/gradient_reducer.h"

namespace muster {
namespace {

constexpr char kReductionEntry[] = "communication/reduction";

DType ComputeType(Precision precision) { return precision == Precision::kFp32 ? DType::kF32 : DType::kBF16; }

UnitRange UnitsOf(const EngineConfig& config) {
  return config.stages[static_cast<size_t>(CoordinateOf(config.layout, config.rank).pipeline)];
}

Tensor AsFloats(const Tensor& bytes) {
  return Tensor(bytes.data, DType::kF32, {bytes.elements() / SizeOf(DType::kF32)});
}

absl::Span<float> HostSpan(const Tensor& floats) {
  return {floats.as<float>(), static_cast<size_t>(floats.elements())};
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankEngine>> RankEngine::Build(const EngineConfig& config, Communicator& world,
                                                              const Clock& clock, Device* device) {
  MUSTER_RETURN_IF_ERROR(CheckEngineConfig(config));
  if (world.size() != config.layout.ranks() || world.rank() != config.rank) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", config.rank, " of ", config.layout.ranks(),
                                                   " is configured, the communicator has rank ", world.rank(), " of ",
                                                   world.size()));
  }
  std::unique_ptr<Device> own_device;
  if (device == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(own_device, OpenDevice(/*ordinal=*/0));
    device = own_device.get();
  }
  MUSTER_ASSIGN_OR_RETURN(
      StageMemory memory,
      StageMemory::Allocate(*device, BuildLedger(config.model, config.layout, {UnitsOf(config)}, config.rank)));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<KernelContext> kernels,
                          KernelContext::Create(*device, {.threads = static_cast<int>(config.layout.threads_per_rank)},
                                                memory.BindBytes("workspace/kernels")));
  MUSTER_ASSIGN_OR_RETURN(RankGroups groups, SplitGroups(world, config.model, config.layout));
  return std::unique_ptr<RankEngine>(
      new RankEngine(config, clock, std::move(own_device), std::move(memory), std::move(kernels), std::move(groups)));
}

RankEngine::RankEngine(const EngineConfig& config_in, const Clock& clock, std::unique_ptr<Device> own_device_in,
                       StageMemory memory_in, std::unique_ptr<KernelContext> kernels_in, RankGroups groups_in)
    : config(config_in),
      coordinate(CoordinateOf(config.layout, config.rank)),
      units(UnitsOf(config)),
      own_device(std::move(own_device_in)),
      device(kernels_in->device()),
      memory(std::move(memory_in)),
      kernels(std::move(kernels_in)),
      groups(std::move(groups_in)),
      timer(clock),
      context{.kernels = *kernels,
              .memory = memory,
              .shape = config.model,
              .micro_batch = config.layout.micro_batch,
              .sequence_length = config.layout.sequence_length,
              .slots = InFlightMicroBatches(config.layout, coordinate.pipeline),
              .compute = ComputeType(config.layout.precision)},
      stage(context, units),
      pipeline(stage, groups, timer),
      parameters(BindStageParameters(memory, config.model, units, context.compute)),
      optimizer(*kernels, parameters, config.training.adamw),
      tied_embedding_(memory, *kernels, groups.embedding.get()),
      gradients_(AsFloats(memory.BindRun(MemoryCategory::kGradients))),
      reduction_scratch_(memory.has(kReductionEntry) ? AsFloats(memory.BindBytes(kReductionEntry)) : Tensor()) {}

absl::Status RankEngine::ReduceGradients() {
  if (groups.data != nullptr) {
    MUSTER_RETURN_IF_ERROR(SumGradients(*groups.data, HostSpan(gradients_), HostSpan(reduction_scratch_)));
  }
  return tied_embedding_.AddGradients();
}

MemoryReport RankEngine::Memory() const {
  MemoryReport report;
  for (int i = 0; i < kMemoryCategories; ++i) {
    report.planned_bytes[static_cast<size_t>(i)] = memory.ledger().bytes(static_cast<MemoryCategory>(i));
  }
  report.used_bytes = memory.bound_bytes();
  report.planned_arena_bytes = memory.plan().bytes;
  report.arena_bytes = memory.used_arena_bytes();
  report.lower_bound_bytes = memory.plan().lower_bound_bytes;
  return report;
}

}  // namespace muster
