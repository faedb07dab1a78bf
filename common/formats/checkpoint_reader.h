// Reads any box of any tensor of a checkpoint, whatever boxes it was written in: that is how a job resumes at another
// layout.
//
// Owned by whoever restores; used by one thread. Shards are mapped, not read: nothing large is allocated.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/formats/checkpoint_manifest.h"
#include "common/formats/local_tensor.h"
#include "common/formats/safetensors.h"

namespace muster {

class CheckpointReader {
 public:
  // Reads the manifest and checks that every shard is there with its size. DATA_LOSS names the shard that is missing or
  // torn, INVALID_ARGUMENT the field of a manifest that does not parse, NOT_FOUND a directory that is no checkpoint.
  static absl::StatusOr<CheckpointReader> Open(const std::string& directory);

  const CheckpointManifest& manifest() const { return manifest_; }

  // Checks every shard's checksum, those that hold optimizer states included: DATA_LOSS naming the first that does not
  // agree.
  absl::Status Verify();

  // Fills `tensor.data` with `tensor.box`. A shard's checksum is verified, over the whole file, when its first box is
  // needed. DATA_LOSS naming the shard when it does not agree; NOT_FOUND when the checkpoint lacks the tensor;
  // FAILED_PRECONDITION when its type or global dims differ from those asked for.
  absl::Status Read(const LocalTensor& tensor);

 private:
  CheckpointReader(std::string directory, CheckpointManifest manifest);
  absl::StatusOr<const SafetensorsFile*> VerifiedShard(int64_t file);
  absl::Status CopyCommonPart(const CheckpointTensor& stored, const StoredBox& source, const LocalTensor& tensor);

  std::string directory_;
  CheckpointManifest manifest_;
  absl::flat_hash_map<std::string, size_t> tensor_index_;  // "kind/name" -> index into manifest_.tensors
  std::vector<std::unique_ptr<SafetensorsFile>> shards_;   // by file index; null until verified
};

}  // namespace muster
