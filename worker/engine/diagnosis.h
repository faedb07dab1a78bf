// Says where a step went wrong: runs its forwards again, with the weights that it used, and looks for the first unit
// whose output is not finite.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "worker/comm/communicator.h"
#include "worker/engine/engine_config.h"
#include "worker/engine/pipeline.h"
#include "worker/engine/step_vote.h"

namespace muster {

// A sentence that names unit, rank and micro-batch; the same on every rank. An error of the communicator when a peer is
// gone. Every rank calls it, before the optimizer changes anything. REQUIRES: the verdict is not finite.
absl::StatusOr<std::string> ExplainNonFinite(Communicator& world, const EngineConfig& config, Pipeline& pipeline,
                                             const Pipeline::MicroBatchAt& at, const StepVerdict& verdict);

}  // namespace muster
