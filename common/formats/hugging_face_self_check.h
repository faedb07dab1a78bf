// What a model is known to answer, stored beside its weights: a short sequence of tokens and the logarithm of the
// probability that the model gives each of them after those before it, its logits at that token, normalised. Whoever
// loads the weights computes them again and refuses when they differ: names and shapes alone do not show that a matrix
// was transposed or a file was damaged.
//
//   {"format_version": 1, "computed_by": "muster 0.1.0", "tokens": [t0, t1, ...], "log_probabilities": [p1, ...]}
//
// `muster export` writes it, and tests/oracle/transformers_logits.py from what transformers computes. Plain data; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/plan/model_shape.h"

namespace muster {

inline constexpr char kSelfCheckFileName[] = "muster_selfcheck.json";

struct LogitsSelfCheck {
  std::string computed_by;
  std::vector<int32_t> tokens;
  // [i], in nats: of tokens[i + 1] after tokens[0 .. i]. One less than tokens.
  std::vector<double> log_probabilities;
};

std::string SerializeSelfCheck(const LogitsSelfCheck& check);

// INVALID_ARGUMENT naming file and field; tokens must be in the shape's vocabulary and fit its context.
absl::StatusOr<LogitsSelfCheck> ParseSelfCheck(absl::string_view json, absl::string_view file, const ModelShape& shape);

// The tokens that a check is made of: spread over the vocabulary by a fixed rule, at most 32.
std::vector<int32_t> SelfCheckTokens(const ModelShape& shape);

// Largest difference that is allowed at a probability, in nats: fp32 arithmetic in another order stays below 1e-4;
// 16-bit weights and activations move a logit by about a hundredth of itself.
inline constexpr double kSelfCheckTolerance = 1e-4;
inline constexpr double kSelfCheckTolerance16Bit = 0.1;

// `computed` may be shorter than the check's, where the training sequence is. FAILED_PRECONDITION naming the first
// position that differs by more, or is no number.
absl::Status CompareSelfCheck(const LogitsSelfCheck& check, absl::Span<const double> computed, double tolerance);

}  // namespace muster
