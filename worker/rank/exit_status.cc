#include "worker/rank/exit_status.h"

#include "common/base/exit_codes.h"

namespace muster {

int ExitCodeOf(const absl::Status& error, RankStage stage) {
  if (error.ok()) return kExitCompleted;
  if (stage == RankStage::kJoin) return kExitInfrastructure;
  switch (error.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
      return kExitUserError;
    case absl::StatusCode::kDataLoss:  // the checkpoint while building, the dataset otherwise
      return stage == RankStage::kBuild ? kExitBadCheckpoint : kExitUserError;
    case absl::StatusCode::kResourceExhausted:  // memory while building, disk space later
      return stage == RankStage::kBuild ? kExitOutOfMemory : kExitInfrastructure;
    default:
      return kExitInfrastructure;
  }
}

int ExitCodeOf(TrainingOutcome outcome) {
  switch (outcome) {
    case TrainingOutcome::kCompleted:
      return kExitCompleted;
    case TrainingOutcome::kStopped:
      return kExitStopped;
    case TrainingOutcome::kRewind:
      return kExitRewind;
  }
  return kExitCompleted;
}

const char* Describe(TrainingOutcome outcome) {
  switch (outcome) {
    case TrainingOutcome::kCompleted:
      return "all steps are done";
    case TrainingOutcome::kStopped:
      return "stopped as asked, after a checkpoint";
    case TrainingOutcome::kRewind:
      return "ended, to go on from an earlier checkpoint";
  }
  return "";
}

}  // namespace muster
