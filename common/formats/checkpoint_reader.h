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

  // Checks every block of every shard, those that hold optimizer states included: DATA_LOSS naming the first shard that
  // is damaged, and where.
  absl::Status Verify();

  // Fills `tensor.data` with `tensor.box`. The checksum of a shard's block is verified when its first byte is needed.
  // DATA_LOSS naming shard and offset where it does not agree; NOT_FOUND when the checkpoint lacks the tensor;
  // FAILED_PRECONDITION when its type or global dims differ from those asked for.
  absl::Status Read(const LocalTensor& tensor);

 private:
  // One file, opened when first needed.
  struct Shard {
    std::unique_ptr<SafetensorsFile> file;
    std::vector<bool> verified;  // by block of kChecksumBlockBytes
  };

  CheckpointReader(std::string directory, CheckpointManifest manifest);
  // Its header is verified.
  absl::StatusOr<Shard*> OpenShard(int64_t file);
  // Verifies what is not yet of the blocks that hold bytes [first, last) of a shard.
  absl::Status VerifyBlocks(const CheckpointFile& expected, const MappedFile& mapped, int64_t first, int64_t last,
                            std::vector<bool>& verified) const;
  absl::Status CopyCommonPart(const CheckpointTensor& stored, const StoredBox& source, const LocalTensor& tensor);

  std::string directory_;
  CheckpointManifest manifest_;
  absl::flat_hash_map<std::string, size_t> tensor_index_;  // "kind/name" -> index into manifest_.tensors
  std::vector<Shard> shards_;                              // by file index
};

}  // namespace muster
