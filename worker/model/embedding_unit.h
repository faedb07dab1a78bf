// The first unit: x = token embedding, + position embedding where the family learns positions. With tensor parallelism
// each rank has a run of the vocabulary's rows, and a token's row comes from the rank that has it.
#pragma once

#include "worker/model/unit.h"

namespace muster {

// REQUIRES: `unit` is the embedding.
std::unique_ptr<ModelUnit> MakeEmbeddingUnit(const UnitContext& context, const Unit& unit);

}  // namespace muster
