// Saves a checkpoint in two phases, so that it exists whole or not at all.
//
//   every rank   WriteShard      ROOT/attempt-N/step-M.tmp/rank-RRRRR.safetensors, fsynced
//   the caller   gathers the records (SerializeShardRecord) on rank 0: that is the barrier
//   rank 0       Commit          the manifest, fsynced, then step-M.tmp becomes step-M
//
// If any rank failed, rank 0 calls Discard instead. A crash at any moment leaves a step-M.tmp, which nobody reads.
// Free functions: one thread per (root, id, rank) at a time. Nothing large is allocated: tensors go from the caller's
// memory to the file.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/formats/checkpoint_manifest.h"
#include "common/formats/local_tensor.h"

namespace muster {

// After an error (RESOURCE_EXHAUSTED "no space left on device writing ..." and the like) this rank's shard is gone;
// the directory stays, as another rank may be about to write there. ALREADY_EXISTS when this attempt has saved this
// step before.
absl::StatusOr<ShardRecord> WriteShard(const std::string& root, const CheckpointId& id, int64_t rank,
                                       absl::Span<const LocalTensor> tensors);

// Rank 0, with the records of all ranks in rank order; `manifest` has everything but files and tensors. Checks that the
// shards are there with their sizes and cover every tensor exactly once. After an error step-M does not exist and
// step-M.tmp is removed.
absl::Status Commit(const std::string& root, CheckpointManifest manifest, absl::Span<const ShardRecord> records);

// Rank 0, when some rank failed: removes step-M.tmp with the shards of the others.
absl::Status Discard(const std::string& root, const CheckpointId& id);

}  // namespace muster
