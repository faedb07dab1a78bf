// The first unit: x = token embedding + position embedding.
#pragma once

#include "worker/model/unit.h"

namespace muster {

// REQUIRES: `unit` is the embedding.
std::unique_ptr<ModelUnit> MakeEmbeddingUnit(const UnitContext& context, const Unit& unit);

}  // namespace muster
