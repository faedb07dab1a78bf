// Clearing up after crashes below a job's root of checkpoints (common/formats/checkpoint_paths.h has its layout), and
// the proof that all ranks see one directory. Free functions; one process writes to a root at a time.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/formats/checkpoint_paths.h"

namespace muster {

// Removes what crashes left behind in attempts before `attempt`: unfinished and half-deleted checkpoints (the agent
// deletes by RemoveTreeAtOnce), never complete ones. Rank 0 calls it when an attempt starts; without it every kill
// during a save would cost a checkpoint's worth of space for ever.
absl::Status RemoveLeftovers(const std::string& root, int64_t attempt);

// FAILED_PRECONDITION when the attempt has complete checkpoints before it began: an earlier cluster's job of the same
// number wrote them, and this one could not write its own.
absl::Status CheckUnused(const std::string& root, int64_t attempt);

// Proof that the ranks share the directory, before the first step: rank 0 writes a nonce, all ranks (after a barrier)
// read it, rank 0 (after another) removes it.
absl::Status WriteProbe(const std::string& root, int64_t attempt, const std::string& nonce);
// FAILED_PRECONDITION, saying that the directory must be shared by all workers, when the nonce is not there or is
// another one.
absl::Status CheckProbe(const std::string& root, int64_t attempt, const std::string& nonce);
absl::Status RemoveProbe(const std::string& root, int64_t attempt);

}  // namespace muster
