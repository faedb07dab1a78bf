// How a rank process ends, as its agent reads it. worker/rank returns these, worker/agent turns them into an ExitKind.
// Any other code, and any signal, is a crash: worth another attempt.
#pragma once

namespace muster {

inline constexpr int kExitCompleted = 0;   // the job's steps are done
inline constexpr int kExitStopped = 10;    // stopped on request; a checkpoint is written if there was anything to write
inline constexpr int kExitRewind = 11;     // a step was not accepted: go on from an earlier checkpoint, behind it
inline constexpr int kExitUserError = 20;  // the job cannot train: bad data, a non-finite loss. Never retried
inline constexpr int kExitBadCheckpoint = 21;   // what it should resume from cannot be read. Retried from an older one
inline constexpr int kExitInfrastructure = 30;  // a lost peer, a deadline, a stale lease, a full disk. Retried
inline constexpr int kExitOutOfMemory = 40;     // memory was refused within the rank's limit

}  // namespace muster
