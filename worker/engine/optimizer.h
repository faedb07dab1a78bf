// AdamW over a stage's parameters, and the gradients' part of the global norm.
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

  // squares[i]: sum of squares of the gradient of model parameter i, where this stage owns it and it is this replica's
  // turn: the replicas, whose gradients are equal, share the work. Others are left alone.
  void SumSquares(int64_t replica, int64_t replicas, std::vector<double>& squares) const;

  // Updates master, moments and value of every parameter; weight decay on those of two dimensions. `step` from 1.
  void Step(int64_t step, double learning_rate, double clip_factor) const;

 private:
  KernelContext& kernels_;
  const std::vector<StageParameter>& parameters_;
  const AdamWOptions options_;
};

}  // namespace muster
