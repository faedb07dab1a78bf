// What `muster export` stores beside the weights (common/formats/hugging_face_self_check.h). One thread a model.
#pragma once

#include "absl/status/statusor.h"
#include "common/formats/hugging_face_self_check.h"
#include "worker/generate/forward_model.h"

namespace muster {

// The logarithm of the probability of a token, nats, in f64. REQUIRES: token < logits.size().
double LogProbability(absl::Span<const float> logits, int32_t token);

// What the model computes for SelfCheckTokens. REQUIRES: they fit the model's window.
absl::StatusOr<LogitsSelfCheck> ComputeSelfCheck(ForwardModel& model);

}  // namespace muster
