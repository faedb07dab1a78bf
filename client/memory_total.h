// Sums over muster.v1 messages.
#pragma once

#include "muster/v1/plan.pb.h"

namespace muster {

inline int64_t Total(const v1::MemoryByCategory& memory) {
  return memory.parameters() + memory.gradients() + memory.optimizer_state() + memory.activations() + memory.logits() +
         memory.communication() + memory.workspace() + memory.staging();
}

}  // namespace muster
