// From an error to the exit code that tells the agent whether another attempt can help. Pure.
#pragma once

#include "absl/status/status.h"
#include "worker/engine/trainer.h"

namespace muster {

// What the rank was doing when the error came: the same code means different things.
enum class RankStage {
  kPrepare,  // reading the assignment, opening data
  kJoin,     // meeting the other ranks: whatever fails here, the job is not to blame
  kBuild,    // allocating, loading weights
  kTrain,
};

int ExitCodeOf(const absl::Status& error, RankStage stage);

// Of a run that ended as it should.
int ExitCodeOf(TrainingOutcome outcome);

// "all steps are done"
const char* Describe(TrainingOutcome outcome);

}  // namespace muster
