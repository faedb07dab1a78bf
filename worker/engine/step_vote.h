// The one exchange of a step in which all ranks take part: what each rank knows goes in, and every rank leaves with the
// same verdict, so that all clip alike, stop in the same step and fail with the same words.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/comm/communicator.h"

namespace muster {

// What a rank knows, zeros elsewhere: sums over ranks are the truth.
struct StepBallot {
  bool stop = false;            // this rank was asked to stop
  bool checkpoint = false;      // this rank was asked for a checkpoint
  bool save_done = true;        // this rank has done its part of the checkpoint that is being saved
  int64_t trace_steps = 0;      // this rank was asked to record so many steps
  double loss_sum = 0;          // of this rank's targets, nats; last stage
  int64_t counted_targets = 0;  // as above
  // Sum of squares of each parameter's gradient, in the order of the model; of each from one rank.
  std::vector<double> squares;
};

struct StepVerdict {
  bool stop = false;            // some rank was asked to
  bool checkpoint = false;      // some rank was asked for one
  bool saves_done = false;      // all ranks have done their parts
  int64_t trace_steps = 0;      // some rank was asked for them: the mean of the requests
  double loss_scale = 1;        // of the gradients
  double loss = 0;              // nats per counted target, summed over replicas in the order of ranks
  int64_t counted_targets = 0;  // of the global batch
  double gradient_norm = 0;     // squares summed in the order of the model, without the loss scale
  std::vector<double> squares;  // with the loss scale

  bool finite() const { return std::isfinite(loss) && std::isfinite(gradient_norm); }
};

// `loss_scale`: what the gradients of the ballot are multiplied with, equal on every rank.
absl::StatusOr<StepVerdict> VoteOnStep(Communicator& world, const StepBallot& ballot, double loss_scale = 1);

}  // namespace muster
