// The second half of a layer: x + down(gelu(up(norm(x)))).
#pragma once

#include "worker/model/unit.h"

namespace muster {

// REQUIRES: `unit` is a feed-forward unit.
std::unique_ptr<ModelUnit> MakeFeedForwardUnit(const UnitContext& context, const Unit& unit);

}  // namespace muster
