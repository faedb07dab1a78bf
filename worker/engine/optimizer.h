// AdamW over a rank's parameters, and the gradients' part of the global norm.
//
// Owned by the trainer, for its thread.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/engine/engine_config.h"
#include "worker/engine/stage_parameters.h"

namespace muster {

// What gradients are multiplied with, as torch.nn.utils.clip_grad_norm_: min(1, clip / (norm + 1e-6)); 1 where clip is
// 0.
double ClipFactor(double gradient_norm, double clip_grad_norm);

class Optimizer {
 public:
  // `kernels` and `parameters` outlive the optimizer.
  Optimizer(KernelContext& kernels, const std::vector<StageParameter>& parameters, const AdamWOptions& options)
      : kernels_(kernels), parameters_(parameters), options_(options) {}

  // Adds to squares[i] the squares of what this rank answers for of the gradient of model parameter i: over all ranks
  // every element counts once.
  void SumSquares(std::vector<double>& squares) const;

  // Updates master, moments and value of every block that this rank updates; weight decay on parameters of two
  // dimensions. `step` from 1.
  void Step(int64_t step, double learning_rate, double clip_factor) const;

 private:
  KernelContext& kernels_;
  const std::vector<StageParameter>& parameters_;
  const AdamWOptions options_;
};

}  // namespace muster
