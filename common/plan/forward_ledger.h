// The ledger of a rank that only runs the model forward, as generation does: what is left of a training ledger without
// gradients, optimizer state and backward passes.
#pragma once

#include "common/plan/ledger.h"

namespace muster {

// Of the whole model on one rank, for micro-batches of layout.micro_batch sequences, one at a time. A unit's saved
// tensors are free once the unit behind it has run, so that all units share their memory.
// REQUIRES: shape and layout pass their checks; layout is of one rank, accumulation_steps 1 and no recomputation.
Ledger BuildForwardLedger(const ModelShape& shape, const Layout& layout);

}  // namespace muster
