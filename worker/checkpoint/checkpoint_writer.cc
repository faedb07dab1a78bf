#include "worker/checkpoint/checkpoint_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/formats/checkpoint_paths.h"
#include "common/formats/safetensors.h"

namespace muster {
namespace {

absl::StatusOr<WrittenFile> WriteTensors(const std::string& path, const CheckpointId& id,
                                         absl::Span<const LocalTensor> tensors) {
  std::vector<TensorToWrite> to_write;
  for (const LocalTensor& tensor : tensors) {
    to_write.push_back({ShardTensorName(tensor.kind, tensor.name, tensor.global_dims, tensor.box), tensor.type,
                        tensor.box.dims, tensor.data});
  }
  return WriteSafetensors(
      path, to_write,
      {{"format", "pt"}, {"muster.attempt", absl::StrCat(id.attempt)}, {"muster.step", absl::StrCat(id.step)}});
}

absl::Status CheckShards(const std::string& directory, const CheckpointManifest& manifest) {
  for (const CheckpointFile& file : manifest.files) {
    const std::string path = absl::StrCat(directory, "/", file.name);
    MUSTER_ASSIGN_OR_RETURN(const int64_t bytes, FileSize(path));
    if (bytes != file.bytes) {
      return absl::DataLossError(absl::StrCat(path, " has ", bytes, " bytes, its rank wrote ", file.bytes,
                                              ": do the ranks share the checkpoint directory?"));
    }
  }
  return absl::OkStatus();
}

absl::Status WriteManifestAndRename(const std::string& root, CheckpointManifest& manifest,
                                    absl::Span<const ShardRecord> records) {
  const std::string unfinished = UnfinishedCheckpointDirectory(root, manifest.id);
  MUSTER_RETURN_IF_ERROR(MergeShardRecords(records, manifest));
  MUSTER_RETURN_IF_ERROR(CheckCoverage(manifest));
  MUSTER_RETURN_IF_ERROR(CheckShards(unfinished, manifest));
  // Fsyncs the directory as well, and with it the names of the shards.
  MUSTER_RETURN_IF_ERROR(
      WriteFileDurably(absl::StrCat(unfinished, "/", kManifestFileName), SerializeManifest(manifest)));
  return RenameDurably(unfinished, CheckpointDirectory(root, manifest.id));
}

}  // namespace

absl::StatusOr<ShardRecord> WriteShard(const std::string& root, const CheckpointId& id, int64_t rank,
                                       absl::Span<const LocalTensor> tensors) {
  if (PathExists(CheckpointDirectory(root, id))) {
    return absl::AlreadyExistsError(absl::StrCat(CheckpointDirectory(root, id), " was written before"));
  }
  const std::string directory = UnfinishedCheckpointDirectory(root, id);
  MUSTER_RETURN_IF_ERROR(MakeDirectories(directory));
  ShardRecord record;
  record.file.name = ShardFileName(rank);
  // The directory stays after an error: another rank may be about to write there. Discard takes it away for all.
  MUSTER_ASSIGN_OR_RETURN(WrittenFile written,
                          WriteTensors(absl::StrCat(directory, "/", record.file.name), id, tensors));
  record.file.bytes = written.bytes;
  record.file.crc32 = written.crc32;
  record.file.block_crc32s = std::move(written.block_crc32s);
  for (const LocalTensor& tensor : tensors) {
    record.tensors.push_back({tensor.name, tensor.kind, tensor.type, tensor.global_dims, {{0, tensor.box}}});
  }
  return record;
}

absl::Status Commit(const std::string& root, CheckpointManifest manifest, absl::Span<const ShardRecord> records) {
  absl::Status status = WriteManifestAndRename(root, manifest, records);
  // What remains of a failed attempt only takes space; the first error is what the user must see.
  if (!status.ok()) Discard(root, manifest.id).IgnoreError();
  return status;
}

absl::Status Discard(const std::string& root, const CheckpointId& id) {
  return RemoveTree(UnfinishedCheckpointDirectory(root, id), root);
}

}  // namespace muster
