// The trainer's side of checkpoints: which tensors of a rank are saved and restored, and what the manifest says.
// checkpoint_saver.h saves with it; worker/checkpoint has the files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/formats/checkpoint_manifest.h"
#include "common/formats/local_tensor.h"
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

// One of the tensors that a checkpoint holds of a block.
struct StateTensor {
  StateKind kind = StateKind::kMaster;
  Tensor tensor;  // f32
};
std::vector<StateTensor> StatesOf(const StateBlock& block);

// A box of one of them, at `data`.
LocalTensor LocalTensorOf(const ParameterInfo& parameter, StateKind kind, const Box& box, void* data);

CheckpointId CheckpointIdOf(const EngineConfig& config, const TrainingPosition& position);

// Where the checkpoint of this position lies: DIRECTORY/attempt-N/step-M.
std::string CheckpointPath(const EngineConfig& config, const TrainingPosition& position);

// Rank 0, when every rank has written its shard: `records` are theirs, serialised, in rank order; empty where a rank
// wrote nothing. After an error the checkpoint does not exist. Takes as long as the disk takes.
absl::Status CommitCheckpoint(const EngineConfig& config, const TrainingPosition& position,
                              const std::vector<std::string>& records);

// Rank 0, when some rank has failed to write: removes what the others have written.
void DiscardCheckpoint(const EngineConfig& config, const TrainingPosition& position);

// Fills masters and moments from the checkpoint, whatever layout wrote it; values are to be published
// (RankEngine::PublishWeights). FAILED_PRECONDITION when it is of another model; DATA_LOSS for whatever else keeps it
// from being read, so that an older one is tried. Both name the file.
absl::StatusOr<TrainingPosition> RestoreCheckpoint(const std::string& directory, Device& device,
                                                   const std::vector<StageParameter>& parameters);

// Before the first step: rank 0 writes a nonce into the checkpoint directory and every rank reads it.
// FAILED_PRECONDITION where the ranks do not share it. Every rank calls it.
// Rank 0 also clears away what earlier attempts left unfinished there.
absl::Status ProveSharedDirectory(Communicator& world, const CheckpointOptions& options);

}  // namespace muster
