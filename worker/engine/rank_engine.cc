#include "worker/engine/rank_engine.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/plan/ledger.h"

namespace muster {
namespace {

DType ComputeType(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return DType::kF32;
    case Precision::kBf16:
      return DType::kBF16;
    case Precision::kFp16:
      return DType::kF16;
  }
  return DType::kF32;
}

std::vector<UnitRange> ChunksOfRank(const EngineConfig& config) {
  return ChunksOf(config.layout, config.stages, CoordinateOf(config.layout, config.rank).pipeline);
}

std::unique_ptr<TensorExchange> MakeTensorExchange(Communicator* group, KernelContext& kernels, PhaseTimer& timer,
                                                   StageMemory& memory) {
  if (group == nullptr) return nullptr;
  return std::make_unique<TensorExchange>(*group, kernels, timer, memory.BindBytes(kTensorParts));
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
      StageMemory::Allocate(*device, BuildLedger(config.model, config.layout, ChunksOfRank(config), config.rank)));
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
      chunks(ChunksOfRank(config)),
      own_device(std::move(own_device_in)),
      device(kernels_in->device()),
      memory(std::move(memory_in)),
      kernels(std::move(kernels_in)),
      groups(std::move(groups_in)),
      recorder(clock, device),
      timer(clock, recorder),
      tensor(MakeTensorExchange(groups.tensor.get(), *kernels, timer, memory)),
      context{.kernels = *kernels,
              .memory = memory,
              .shape = config.model,
              .micro_batch = config.layout.micro_batch,
              .sequence_length = config.layout.sequence_length,
              .compute = ComputeType(config.layout.precision),
              .recompute = config.layout.recompute,
              .loss_chunk_tokens = config.layout.loss_chunk_tokens,
              .tensor = tensor.get()},
      stage(context, config.layout, coordinate.pipeline, chunks, recorder),
      pipeline(stage, config.layout, coordinate.pipeline, std::move(groups.chunks), timer),
      parameters(BindStageParameters(
          memory, config.model,
          {.layout = config.layout, .chunks = chunks, .coordinate = coordinate, .compute = context.compute})),
      optimizer(*kernels, parameters, config.training.adamw),
      reduction({.shape = config.model, .layout = config.layout, .chunks = chunks, .coordinate = coordinate}, memory,
                *kernels, groups, timer),
      checkpoint_staging(memory.has(kCheckpointStaging) ? memory.BindBytes(kCheckpointStaging) : Tensor()) {}

absl::Status RankEngine::PublishWeights() {
  CastMastersToValues(*kernels, parameters);
  return GatherValues();
}

absl::Status RankEngine::GatherValues() {
  if (!config.layout.optimizer_sharding || groups.data == nullptr) return absl::OkStatus();
  PhaseScope scope(timer, Phase::kCommExposed);
  return GatherReplicaRows(*groups.data, parameters);
}

absl::Status RankEngine::FallBackToBf16() {
  stage.Rebind(DType::kBF16);
  // In place: a checkpoint that is being written refers to them.
  for (StageParameter& parameter : parameters) {
    parameter.value.dtype = DType::kBF16;
    for (StateBlock& block : parameter.updated) block.value.dtype = DType::kBF16;
    for (StateBlock& block : parameter.answered_for) block.value.dtype = DType::kBF16;
  }
  return PublishWeights();
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
