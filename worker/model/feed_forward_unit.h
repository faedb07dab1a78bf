// The second half of a layer: x + down(gelu(up(norm(x)))), or, where the family's is gated, x + down(silu(gate) * up)
// with gate and up of norm(x) (SwiGLU).
#pragma once

#include "worker/model/unit.h"

namespace muster {

// REQUIRES: `unit` is a feed-forward unit.
std::unique_ptr<ModelUnit> MakeFeedForwardUnit(const UnitContext& context, const Unit& unit);

}  // namespace muster
