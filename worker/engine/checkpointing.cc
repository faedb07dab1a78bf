#include "worker/engine/checkpointing.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/formats/checkpoint_reader.h"
#include "common/formats/local_tensor.h"
#include "worker/checkpoint/checkpoint_directory.h"
#include "worker/checkpoint/checkpoint_writer.h"
#include "worker/engine/fingerprint.h"
#include "worker/engine/gather_strings.h"

namespace muster {
namespace {

constexpr int64_t kPieceElements = 65536;  // 256 KiB on the host at a time

CheckpointManifest ManifestOf(const EngineConfig& config, const TrainingPosition& position) {
  CheckpointManifest manifest;
  manifest.id = CheckpointIdOf(config, position);
  manifest.parent = position.resumed_from;
  manifest.job_id = config.checkpoint.job_id;
  manifest.model = config.model;
  manifest.spec_json = config.checkpoint.spec_json;
  manifest.consumed_samples = position.consumed_samples;
  manifest.loss_scaler = position.policy.loss_scaler;
  manifest.history = position.policy.history;
  manifest.numerics_fingerprint = Fingerprint(config);
  return manifest;
}

// Reads a box into memory of the device, some rows at a time.
absl::Status ReadBox(CheckpointReader& reader, const ParameterInfo& parameter, StateKind kind, const Box& box,
                     Device& device, float* to) {
  const int64_t rows = box.dims[0];
  const int64_t row_elements = box.elements() / rows;
  const int64_t step = std::min(rows, std::max<int64_t>(1, kPieceElements / row_elements));
  std::vector<float> buffer(static_cast<size_t>(step * row_elements));
  for (int64_t row = 0; row < rows; row += step) {
    Box part = box;
    part.offset[0] += row;
    part.dims[0] = std::min(step, rows - row);
    MUSTER_RETURN_IF_ERROR(reader.Read(LocalTensorOf(parameter, kind, part, buffer.data())));
    device.CopyToDevice(to + row * row_elements, buffer.data(), part.elements() * static_cast<int64_t>(sizeof(float)));
    // The next rows overwrite these on the host.
    MUSTER_RETURN_IF_ERROR(device.Synchronize());
  }
  return absl::OkStatus();
}

absl::StatusOr<TrainingPosition> Restore(const std::string& directory, Device& device,
                                         const std::vector<StageParameter>& parameters) {
  MUSTER_ASSIGN_OR_RETURN(CheckpointReader reader, CheckpointReader::Open(directory));
  for (const StageParameter& parameter : parameters) {
    for (const StateBlock& block : parameter.updated) {
      for (const StateTensor& state : StatesOf(block)) {
        MUSTER_RETURN_IF_ERROR(
            ReadBox(reader, parameter.info, state.kind, block.box, device, state.tensor.as<float>()));
      }
    }
  }
  const CheckpointManifest& manifest = reader.manifest();
  return TrainingPosition{.steps_done = manifest.id.step,
                          .consumed_samples = manifest.consumed_samples,
                          .resumed_from = manifest.id,
                          .policy = {.loss_scaler = manifest.loss_scaler, .history = manifest.history}};
}

}  // namespace

std::vector<StateTensor> StatesOf(const StateBlock& block) {
  std::vector<StateTensor> states = {{StateKind::kMaster, block.master}};
  if (block.gradient.data == nullptr) return states;
  states.push_back({StateKind::kFirstMoment, block.first});
  states.push_back({StateKind::kSecondMoment, block.second});
  return states;
}

LocalTensor LocalTensorOf(const ParameterInfo& parameter, StateKind kind, const Box& box, void* data) {
  return {.name = parameter.name,
          .kind = kind,
          .type = StoredType::kF32,
          .global_dims = parameter.dims,
          .box = box,
          .data = data};
}

CheckpointId CheckpointIdOf(const EngineConfig& config, const TrainingPosition& position) {
  return {.attempt = config.checkpoint.attempt, .step = position.steps_done};
}

std::string CheckpointPath(const EngineConfig& config, const TrainingPosition& position) {
  return CheckpointDirectory(config.checkpoint.directory, CheckpointIdOf(config, position));
}

absl::Status CommitCheckpoint(const EngineConfig& config, const TrainingPosition& position,
                              const std::vector<std::string>& records) {
  std::vector<ShardRecord> parsed;
  for (size_t rank = 0; rank < records.size(); ++rank) {
    if (records[rank].empty()) continue;
    MUSTER_ASSIGN_OR_RETURN(ShardRecord record, ParseShardRecord(records[rank], absl::StrCat("record of rank ", rank)));
    parsed.push_back(std::move(record));
  }
  return Commit(config.checkpoint.directory, ManifestOf(config, position), parsed);
}

void DiscardCheckpoint(const EngineConfig& config, const TrainingPosition& position) {
  // What remains only takes space; why the save failed is what the user must see.
  Discard(config.checkpoint.directory, CheckpointIdOf(config, position)).IgnoreError();
}

absl::StatusOr<TrainingPosition> RestoreCheckpoint(const std::string& directory, Device& device,
                                                   const std::vector<StageParameter>& parameters) {
  absl::StatusOr<TrainingPosition> position = Restore(directory, device, parameters);
  if (position.ok()) return position;
  const bool other_model = position.status().code() == absl::StatusCode::kFailedPrecondition;
  return absl::Status(other_model ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kDataLoss,
                      absl::StrCat("cannot resume from ", directory, ": ", position.status().message()));
}

absl::Status ProveSharedDirectory(Communicator& world, const CheckpointOptions& options) {
  std::string nonce;
  absl::Status written;
  if (world.rank() == 0) {
    std::random_device random;
    nonce = absl::StrCat(options.job_id, "-", random(), "-", random());
    written = CheckUnused(options.directory, options.attempt);
    if (written.ok()) written = WriteProbe(options.directory, options.attempt, nonce);
    if (written.ok()) written = RemoveLeftovers(options.directory, options.attempt);
  }
  MUSTER_RETURN_IF_ERROR(ShareStatus(world, written));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> nonces, GatherStrings(world, nonce));
  MUSTER_RETURN_IF_ERROR(ShareStatus(world, CheckProbe(options.directory, options.attempt, nonces[0])));
  return world.rank() == 0 ? RemoveProbe(options.directory, options.attempt) : absl::OkStatus();
}

}  // namespace muster
