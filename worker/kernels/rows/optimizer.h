// AdamW's update of one element. Plain C++17.
#pragma once

#include <cstdint>

#include "worker/kernels/formulas.h"

namespace muster::kernels {

// Loshchilov and Hutter 2019, algorithm 2, in the order in which torch.optim.AdamW computes it. `parameter` may be
// `master`.
template <typename T>
struct AdamWRows {
  static constexpr bool kColumnsIndependent = true;
  const float* gradient;
  float* master;
  float* first;
  float* second;
  T* parameter;
  float gradient_scale;
  float rest1;  // 1 - beta1
  float beta2;
  float rest2;  // 1 - beta2
  float eps;
  float keep;               // 1 - learning rate * weight decay
  float step_size;          // learning rate / (1 - beta1^step)
  float second_root_scale;  // 1 / sqrt(1 - beta2^step)

  template <typename Row>
  MUSTER_ROW_BODY void operator()(const Row& row, int64_t) const {
    const AdamWRows c = *this;  // in registers
    const auto gradients = row.load(gradient);
    const auto masters = row.load(master);
    const auto firsts = row.load(first);
    const auto seconds = row.load(second);
    row.store(first, [&](auto i) { return firsts[i] + c.rest1 * (gradients[i] * c.gradient_scale - firsts[i]); });
    row.store(second, [&](auto i) {
      const float g = gradients[i] * c.gradient_scale;
      return c.beta2 * seconds[i] + c.rest2 * (g * g);
    });
    const auto new_firsts = row.load(first);
    const auto new_seconds = row.load(second);
    row.store(master, [&](auto i) {
      const float root = SquareRoot(new_seconds[i]) * c.second_root_scale + c.eps;
      return c.keep * masters[i] - c.step_size * (new_firsts[i] / root);
    });
    if (static_cast<const void*>(parameter) == static_cast<const void*>(master)) return;
    const auto new_masters = row.load(master);
    row.store(parameter, [&](auto i) { return new_masters[i]; });
  }
};

}  // namespace muster::kernels
