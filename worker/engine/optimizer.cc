#include "worker/engine/optimizer.h"

#include <algorithm>

#include "worker/kernels/kernels.h"

namespace muster {

double ClipFactor(double gradient_norm, double clip_grad_norm) {
  return clip_grad_norm > 0 ? std::min(1.0, clip_grad_norm / (gradient_norm + 1e-6)) : 1.0;
}

void Optimizer::SumSquares(int64_t replica, int64_t replicas, std::vector<double>& squares) const {
  for (const StageParameter& parameter : parameters_) {
    const bool mine = static_cast<int64_t>(parameter.model_index) % replicas == replica;
    if (!parameter.owned || !mine) continue;
    squares[parameter.model_index] = kernels::SumOfSquaresToHost(kernels_, parameter.gradient);
  }
}

void Optimizer::Step(int64_t step, double learning_rate, double clip_factor) const {
  for (const StageParameter& parameter : parameters_) {
    kernels::AdamW(kernels_, {.gradient = parameter.gradient,
                              .master = parameter.master,
                              .first = parameter.first,
                              .second = parameter.second,
                              .parameter = parameter.value,
                              .gradient_scale = static_cast<float>(clip_factor),
                              .learning_rate = learning_rate,
                              .beta1 = options_.beta1,
                              .beta2 = options_.beta2,
                              .eps = options_.epsilon,
                              .weight_decay = parameter.info.decay ? options_.weight_decay : 0,
                              .step = step});
  }
}

}  // namespace muster
