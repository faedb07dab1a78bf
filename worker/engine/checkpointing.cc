#include "worker/engine/checkpointing.h"

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

// The three tensors that a checkpoint holds of a parameter, whole.
std::vector<LocalTensor> LocalTensors(const StageParameter& parameter) {
  std::vector<LocalTensor> result;
  const std::pair<StateKind, Tensor> states[] = {{StateKind::kMaster, parameter.master},
                                                 {StateKind::kFirstMoment, parameter.first},
                                                 {StateKind::kSecondMoment, parameter.second}};
  for (const auto& [kind, tensor] : states) {
    result.push_back(
        {.name = parameter.info.name,
         .kind = kind,
         .type = StoredType::kF32,
         .global_dims = parameter.info.dims,
         .box = {.offset = std::vector<int64_t>(parameter.info.dims.size(), 0), .dims = parameter.info.dims},
         .data = tensor.data});
  }
  return result;
}

CheckpointId IdOf(const EngineConfig& config, const TrainingPosition& position) {
  return {.attempt = config.checkpoint.attempt, .step = position.steps_done};
}

CheckpointManifest ManifestOf(const EngineConfig& config, const TrainingPosition& position) {
  CheckpointManifest manifest;
  manifest.id = IdOf(config, position);
  manifest.parent = position.resumed_from;
  manifest.job_id = config.checkpoint.job_id;
  manifest.model = config.model;
  manifest.spec_json = config.checkpoint.spec_json;
  manifest.consumed_samples = position.consumed_samples;
  manifest.numerics_fingerprint = Fingerprint(config);
  return manifest;
}

// This rank's record, or an empty one where it writes nothing.
absl::StatusOr<std::string> WriteOwnShard(const EngineConfig& config, const std::vector<StageParameter>& parameters,
                                          const TrainingPosition& position, int64_t& bytes) {
  if (CoordinateOf(config.layout, config.rank).data != 0) return std::string();
  std::vector<LocalTensor> tensors;
  for (const StageParameter& parameter : parameters) {
    if (!parameter.owned) continue;
    for (LocalTensor& tensor : LocalTensors(parameter)) tensors.push_back(std::move(tensor));
  }
  MUSTER_ASSIGN_OR_RETURN(const ShardRecord record,
                          WriteShard(config.checkpoint.directory, IdOf(config, position), config.rank, tensors));
  bytes = record.file.bytes;
  return SerializeShardRecord(record);
}

absl::Status CommitRecords(const EngineConfig& config, const TrainingPosition& position,
                           const std::vector<std::string>& texts) {
  std::vector<ShardRecord> records;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank].empty()) continue;
    MUSTER_ASSIGN_OR_RETURN(ShardRecord record, ParseShardRecord(texts[rank], absl::StrCat("record of rank ", rank)));
    records.push_back(std::move(record));
  }
  return Commit(config.checkpoint.directory, ManifestOf(config, position), records);
}

absl::StatusOr<TrainingPosition> Restore(const std::string& directory, const std::vector<StageParameter>& parameters) {
  MUSTER_ASSIGN_OR_RETURN(CheckpointReader reader, CheckpointReader::Open(directory));
  for (const StageParameter& parameter : parameters) {
    for (const LocalTensor& tensor : LocalTensors(parameter)) MUSTER_RETURN_IF_ERROR(reader.Read(tensor));
  }
  const CheckpointManifest& manifest = reader.manifest();
  return TrainingPosition{
      .steps_done = manifest.id.step, .consumed_samples = manifest.consumed_samples, .resumed_from = manifest.id};
}

}  // namespace

absl::StatusOr<int64_t> SaveCheckpoint(Communicator& world, const EngineConfig& config,
                                       const std::vector<StageParameter>& parameters,
                                       const TrainingPosition& position) {
  int64_t bytes = 0;
  const absl::StatusOr<std::string> record = WriteOwnShard(config, parameters, position, bytes);
  if (absl::Status status = ShareStatus(world, record.status()); !status.ok()) {
    if (world.rank() == 0) Discard(config.checkpoint.directory, IdOf(config, position)).IgnoreError();
    return status;
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> records, GatherStrings(world, *record));
  const absl::Status committed = world.rank() == 0 ? CommitRecords(config, position, records) : absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(ShareStatus(world, committed));
  return bytes;
}

std::string CheckpointPath(const EngineConfig& config, const TrainingPosition& position) {
  return CheckpointDirectory(config.checkpoint.directory, IdOf(config, position));
}

absl::StatusOr<TrainingPosition> RestoreCheckpoint(const std::string& directory,
                                                   const std::vector<StageParameter>& parameters) {
  absl::StatusOr<TrainingPosition> position = Restore(directory, parameters);
  if (position.ok()) return position;
  return absl::DataLossError(absl::StrCat("cannot resume from ", directory, ": ", position.status().message()));
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
