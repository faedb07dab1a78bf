// What a rank's exit code means, for the rank that says it and for the agent that reads it.
#pragma once

#include "common/base/exit_codes.h"
#include "muster/v1/worker.pb.h"

namespace muster {

// EXIT_CRASHED for a code that no rank returns on purpose.
inline v1::ExitKind ExitKindOf(int exit_code) {
  switch (exit_code) {
    case kExitCompleted:
      return v1::EXIT_COMPLETED;
    case kExitStopped:
      return v1::EXIT_STOPPED;
    case kExitRewind:
      return v1::EXIT_REWIND;
    case kExitUserError:
      return v1::EXIT_USER_ERROR;
    case kExitBadCheckpoint:
      return v1::EXIT_BAD_CHECKPOINT;
    case kExitInfrastructure:
      return v1::EXIT_INFRASTRUCTURE;
    case kExitOutOfMemory:
      return v1::EXIT_OUT_OF_MEMORY;
    default:
      return v1::EXIT_CRASHED;
  }
}

}  // namespace muster
