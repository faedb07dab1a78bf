#include "worker/generate/compute_self_check.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {

double LogProbability(absl::Span<const float> logits, int32_t token) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return static_cast<double>(logits[static_cast<size_t>(token)]) - largest - std::log(sum);
}

absl::StatusOr<LogitsSelfCheck> ComputeSelfCheck(ForwardModel& model) {
  LogitsSelfCheck check;
  check.computed_by = absl::StrCat("muster ", MUSTER_VERSION);
  check.tokens = SelfCheckTokens(model.shape());
  MUSTER_RETURN_IF_ERROR(model.Forward(check.tokens));
  std::vector<float> logits(static_cast<size_t>(model.shape().vocab));
  for (size_t i = 0; i + 1 < check.tokens.size(); ++i) {
    model.CopyLogits(static_cast<int64_t>(i), absl::MakeSpan(logits));
    check.log_probabilities.push_back(LogProbability(logits, check.tokens[i + 1]));
  }
  return check;
}

}  // namespace muster
