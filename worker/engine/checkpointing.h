// The trainer's side of checkpoints: which tensors of a stage are saved and restored, and how all ranks agree that a
// checkpoint is whole. worker/checkpoint has the files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/formats/checkpoint_manifest.h"
#include "worker/comm/communicator.h"
#include "worker/engine/engine_config.h"
#include "worker/engine/stage_parameters.h"
#include "worker/engine/step_policy.h"
#include "worker/tensor/device.h"

namespace muster {

// Where a run stands between two steps.
struct TrainingPosition {
  int64_t steps_done = 0;
  int64_t consumed_samples = 0;
  std::optional<CheckpointId> resumed_from;
  StepPolicyState policy;
};

// Every rank calls it at the same time. Every rank writes what it answers for; rank 0 commits when all have. Returns
// the bytes of this rank's shard, 0 where it wrote none. The error of any rank ends it on all of them, and then the
// checkpoint does not exist.
absl::StatusOr<int64_t> SaveCheckpoint(Communicator& world, const EngineConfig& config,
                                       const std::vector<StageParameter>& parameters, const TrainingPosition& position);

// Where the checkpoint of this position lies: DIRECTORY/attempt-N/step-M.
std::string CheckpointPath(const EngineConfig& config, const TrainingPosition& position);

// Fills masters and moments from the checkpoint, whatever layout wrote it; values are to be published
// (RankEngine::PublishWeights). Errors name the file.
absl::StatusOr<TrainingPosition> RestoreCheckpoint(const std::string& directory, Device& device,
                                                   const std::vector<StageParameter>& parameters);

// Before the first step: rank 0 writes a nonce into the checkpoint directory and every rank reads it.
// FAILED_PRECONDITION where the ranks do not share it. Every rank calls it.
// Rank 0 also clears away what earlier attempts left unfinished there.
absl::Status ProveSharedDirectory(Communicator& world, const CheckpointOptions& options);

}  // namespace muster
