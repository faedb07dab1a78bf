// The unit of a model's description, of whatever kind.
#pragma once

#include <memory>

#include "worker/model/unit.h"

namespace muster {

std::unique_ptr<ModelUnit> MakeUnit(const UnitContext& context, const Unit& unit);

}  // namespace muster
