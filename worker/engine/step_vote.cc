#include "worker/engine/step_vote.h"

#include <cmath>

#include "absl/types/span.h"
#include "common/base/status_macros.h"

namespace muster {

absl::StatusOr<StepVerdict> VoteOnStep(Communicator& world, const StepBallot& ballot, double loss_scale) {
  std::vector<double> values = {ballot.loss_sum,
                                static_cast<double>(ballot.counted_targets),
                                ballot.stop ? 1.0 : 0.0,
                                ballot.checkpoint ? 1.0 : 0.0,
                                ballot.trace_steps > 0 ? 1.0 : 0.0,
                                static_cast<double>(ballot.trace_steps),
                                ballot.save_done ? 0.0 : 1.0};
  const size_t squares_begin = values.size();
  values.insert(values.end(), ballot.squares.begin(), ballot.squares.end());
  MUSTER_RETURN_IF_ERROR(AllReduceSum(world, absl::MakeSpan(values)));

  StepVerdict verdict;
  verdict.loss_scale = loss_scale;
  verdict.loss = values[0] / values[1];
  verdict.counted_targets = static_cast<int64_t>(values[1]);
  verdict.stop = values[2] > 0;
  verdict.checkpoint = values[3] > 0;
  if (values[4] > 0) verdict.trace_steps = static_cast<int64_t>(values[5] / values[4]);
  verdict.saves_done = values[6] == 0;
  verdict.squares.assign(values.begin() + static_cast<std::ptrdiff_t>(squares_begin), values.end());
  double sum = 0;
  for (const double square : verdict.squares) sum += square;
  verdict.gradient_norm = std::sqrt(sum) / loss_scale;
  return verdict;
}

}  // namespace muster
