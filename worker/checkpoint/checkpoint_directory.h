// Where checkpoints lie under a job's root: ROOT/attempt-N/step-M. Finding, choosing and deleting them, and the proof
// that all ranks see one directory. Free functions; one process deletes at a time (the coordinator says what).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/formats/checkpoint_manifest.h"

namespace muster {

std::string AttemptDirectory(const std::string& root, int64_t attempt);
std::string CheckpointDirectory(const std::string& root, const CheckpointId& id);  // ROOT/attempt-3/step-200
std::string UnfinishedCheckpointDirectory(const std::string& root,
                                          const CheckpointId& id);  // ROOT/attempt-3/step-200.tmp
std::string ShardFileName(int64_t rank);                            // rank-00002.safetensors

// Complete checkpoints, oldest first by (attempt, step). A root that does not exist yet has none.
absl::StatusOr<std::vector<CheckpointId>> FindCheckpoints(const std::string& root);

// Renamed first, then removed: a reader never finds half of one. NOT_FOUND when there is none.
absl::Status DeleteCheckpoint(const std::string& root, const CheckpointId& id);

// Removes what crashes left behind in attempts before `attempt`: unfinished and half-deleted checkpoints, never
// complete ones. Rank 0 calls it when an attempt starts; without it every kill during a save would cost a checkpoint's
// worth of space for ever.
absl::Status RemoveLeftovers(const std::string& root, int64_t attempt);

// Which of `complete` the policy `keep: N` gives up: all but the newest `keep` and but `last_good`, the one that a
// recovery would resume from. `keep` below 1 counts as 1. Pure; the result is oldest first.
std::vector<CheckpointId> CheckpointsToDelete(std::vector<CheckpointId> complete, int64_t keep,
                                              const CheckpointId& last_good);

// Proof that the ranks share the directory, before the first step: rank 0 writes a nonce, all ranks (after a barrier)
// read it, rank 0 (after another) removes it.
absl::Status WriteProbe(const std::string& root, int64_t attempt, const std::string& nonce);
// FAILED_PRECONDITION, saying that the directory must be shared by all workers, when the nonce is not there or is
// another one.
absl::Status CheckProbe(const std::string& root, int64_t attempt, const std::string& nonce);
absl::Status RemoveProbe(const std::string& root, int64_t attempt);

}  // namespace muster
