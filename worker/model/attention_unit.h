// The first half of a layer: x + projection(attention(qkv(norm(x)))).
#pragma once

#include "worker/model/unit.h"

namespace muster {

// REQUIRES: `unit` is an attention unit.
std::unique_ptr<ModelUnit> MakeAttentionUnit(const UnitContext& context, const Unit& unit);

}  // namespace muster
