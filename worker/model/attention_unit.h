// The first half of a layer: x + projection(attention(qkv(norm(x)))), with rotary positions where the family has them.
#pragma once

#include "worker/model/unit.h"

namespace muster {

// Fills what the attention units of a rank share, the table of rotary positions. Before the first forward.
void FillAttentionTables(const UnitContext& context);

// REQUIRES: `unit` is an attention unit.
std::unique_ptr<ModelUnit> MakeAttentionUnit(const UnitContext& context, const Unit& unit);

}  // namespace muster
