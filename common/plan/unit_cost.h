// What a unit costs to run, from the shape alone. The default costs of the partitioner until measured times exist.
#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/model_shape.h"

namespace muster {

// FLOPs of one unit's forward pass for one token: two per multiply-add of its matmuls and of attention at this sequence
// length, not halved for causality (as ModelFlopsPerToken). The embedding is a look-up and costs none. Backward is
// twice that (each matmul has two gradients).
double UnitForwardFlopsPerToken(const ModelShape& shape, const Unit& unit, int64_t sequence_length);

// One for each unit, in order.
std::vector<double> UnitForwardFlopsPerToken(const ModelShape& shape, int64_t sequence_length);

}  // namespace muster
