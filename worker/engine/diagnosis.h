// Says where a step went wrong: runs its forwards again, with the weights that it used, and looks for the first unit
// whose output is not finite.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "worker/comm/communicator.h"
#include "worker/engine/engine_config.h"
#include "worker/engine/pipeline.h"
#include "worker/engine/stage.h"
#include "worker/engine/step_vote.h"

namespace muster {

bool IsFinite(const StepVerdict& verdict);

// FAILED_PRECONDITION that names step, unit, rank and micro-batch; the same on every rank. An error of the communicator
// when a peer is gone. Every rank calls it, before the optimizer changes anything.
absl::Status ExplainNonFinite(Communicator& world, const EngineConfig& config, Stage& stage, Pipeline& pipeline,
                              const Pipeline::MicroBatchAt& at, int64_t step, const StepVerdict& verdict);

}  // namespace muster
