#include "worker/engine/optimizer.h"

#include <algorithm>

#include "worker/kernels/kernels.h"

namespace muster {

double ClipFactor(double gradient_norm, double clip_grad_norm) {
  return clip_grad_norm > 0 ? std::min(1.0, clip_grad_norm / (gradient_norm + 1e-6)) : 1.0;
}

void Optimizer::SumSquares(std::vector<double>& squares) const {
  for (const StageParameter& parameter : parameters_) {
    for (const StateBlock& block : parameter.answered_for) {
      if (block.gradient.data == nullptr) continue;
      squares[parameter.model_index] += kernels::SumOfSquaresToHost(kernels_, block.gradient);
    }
  }
}

void Optimizer::Step(int64_t step, double learning_rate, double clip_factor) const {
  for (const StageParameter& parameter : parameters_) {
    for (const StateBlock& block : parameter.updated) {
      if (block.gradient.data == nullptr) continue;
      kernels::AdamW(kernels_, {.gradient = block.gradient,
                                .master = block.master,
                                .first = block.first,
                                .second = block.second,
                                .parameter = block.value,
                                .gradient_scale = static_cast<float>(clip_factor),
                                .learning_rate = learning_rate,
                                .beta1 = options_.beta1,
                                .beta2 = options_.beta2,
                                .eps = options_.epsilon,
                                .weight_decay = parameter.info.decay ? options_.weight_decay : 0,
                                .step = step});
    }
  }
}

}  // namespace muster
