// Places a ledger's entries in one block of memory per space so that entries whose lifetimes overlap never share a
// byte.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/plan/ledger.h"

namespace muster {

struct ArenaRequest {
  int64_t bytes = 0;
  Lifetime lifetime;
  std::optional<Lifetime> again = std::nullopt;  // a second one, apart from the first
};

struct ArenaPlan {
  std::vector<int64_t> offsets;   // one for each request, in the order of the requests
  int64_t bytes = 0;              // the size of the block
  int64_t lower_bound_bytes = 0;  // the most that is live at any tick: no placement can be smaller
};

// Greedy by size (the greedy memory planner of TFLite Micro): the largest first, ties by order, each at the lowest
// offset that is free over its whole lifetime, or both of them.
ArenaPlan PlaceGreedyBySize(const std::vector<ArenaRequest>& requests);

// The entries of `space`: those that live the whole step first, in ledger order and contiguous (so that parameters,
// gradients and optimizer state are each one run of memory), then the rest greedily behind them. Offsets of entries in
// other spaces are -1.
ArenaPlan PlaceLedger(const Ledger& ledger, MemorySpace space);

}  // namespace muster
