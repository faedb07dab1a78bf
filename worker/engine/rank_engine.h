// Everything that one rank trains with, put together once: memory, kernels, groups, stage, pipeline and optimizer.
//
// Owned by the trainer, for its thread. Members are built in this order and refer to those above them.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "worker/comm/communicator.h"
#include "worker/engine/engine_config.h"
#include "worker/engine/gradient_reduction.h"
#include "worker/engine/observer.h"
#include "worker/engine/optimizer.h"
#include "worker/engine/phase_timer.h"
#include "worker/engine/pipeline.h"
#include "worker/engine/rank_groups.h"
#include "worker/engine/stage.h"
#include "worker/engine/stage_parameters.h"
#include "worker/engine/tensor_exchange.h"
#include "worker/engine/trace_recorder.h"
#include "worker/kernels/context.h"
#include "worker/model/stage_memory.h"
#include "worker/tensor/device.h"

namespace muster {

class RankEngine {
 public:
  // Checks the configuration, allocates the arena, splits the groups. Weights are not set yet. Every rank calls it at
  // the same time.
  // `device`, which outlives the engine, may be null: then the engine opens that of the linked back-end.
  static absl::StatusOr<std::unique_ptr<RankEngine>> Build(const EngineConfig& config, Communicator& world,
                                                           const Clock& clock, Device* device = nullptr);

  RankEngine(const RankEngine&) = delete;
  RankEngine& operator=(const RankEngine&) = delete;

  // What every rank computes with is from now on what its masters say: casts them where they differ, and gets from the
  // other replicas the rows that a sharded optimizer keeps there. Every rank calls it, after setting masters.
  absl::Status PublishWeights();

  // The same after Optimizer::Step, which has cast. Every rank calls it.
  absl::Status GatherValues();

  // An fp16 engine computes in bf16 from now on, as wide and with the range of f32, from the same masters in the same
  // arena. Every rank calls it, between two steps.
  absl::Status FallBackToBf16();

  MemoryReport Memory() const;

  const EngineConfig config;
  const RankCoordinate coordinate;
  const std::vector<UnitRange> chunks;       // layout.h
  const std::unique_ptr<Device> own_device;  // null where the device was given
  Device& device;
  StageMemory memory;
  const std::unique_ptr<KernelContext> kernels;
  RankGroups groups;
  TraceRecorder recorder;
  PhaseTimer timer;
  const std::unique_ptr<TensorExchange> tensor;  // null with one tensor rank
  const UnitContext context;                     // but for the slots, which each chunk has of its own
  Stage stage;
  Pipeline pipeline;
  std::vector<StageParameter> parameters;
  const Optimizer optimizer;
  GradientReduction reduction;
  const Tensor checkpoint_staging;  // host memory for what this rank answers for; empty where the job has none

 private:
  RankEngine(const EngineConfig& config, const Clock& clock, std::unique_ptr<Device> own_device, StageMemory memory,
             std::unique_ptr<KernelContext> kernels, RankGroups groups);
};

}  // namespace muster
