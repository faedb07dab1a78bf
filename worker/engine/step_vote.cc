#include "worker/engine/step_vote.h"

#include <cmath>

#include "absl/types/span.h"
#include "common/base/status_macros.h"

namespace muster {

absl::StatusOr<StepVerdict> VoteOnStep(Communicator& world, const StepBallot& ballot) {
  std::vector<double> values = {ballot.stop ? 1.0 : 0.0, ballot.loss_sum, static_cast<double>(ballot.counted_targets)};
  const size_t squares_begin = values.size();
  values.insert(values.end(), ballot.squares.begin(), ballot.squares.end());
  MUSTER_RETURN_IF_ERROR(AllReduceSum(world, absl::MakeSpan(values)));

  StepVerdict verdict;
  verdict.stop = values[0] > 0;
  verdict.counted_targets = static_cast<int64_t>(values[2]);
  verdict.loss = values[1] / values[2];
  verdict.squares.assign(values.begin() + static_cast<std::ptrdiff_t>(squares_begin), values.end());
  double sum = 0;
  for (const double square : verdict.squares) sum += square;
  verdict.gradient_norm = std::sqrt(sum);
  return verdict;
}

}  // namespace muster
