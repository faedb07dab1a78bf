// Whether the weights that were loaded compute what they did where they come from
// (common/formats/hugging_face_self_check.h).
#pragma once

#include "absl/status/status.h"
#include "common/formats/hugging_face_self_check.h"
#include "worker/engine/rank_engine.h"

namespace muster {

// One forward of the check's tokens through the whole pipeline, in the shapes of training; where the training sequence
// is shorter, of as many as fit. FAILED_PRECONDITION, on every rank, when the head's losses are not those of the check.
// Every rank calls it, between two steps.
absl::Status CheckLogits(Communicator& world, RankEngine& engine, const LogitsSelfCheck& check);

}  // namespace muster
