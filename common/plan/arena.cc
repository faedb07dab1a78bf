#include "common/plan/arena.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/check.h"

namespace muster {
namespace {

bool Overlap(const Lifetime& a, const Lifetime& b) {
  return a.first_tick <= b.last_tick && b.first_tick <= a.last_tick;
}

// The most bytes that are live at once. What ends at a tick is still live in it.
int64_t MostLiveBytes(const std::vector<ArenaRequest>& requests) {
  std::vector<std::pair<int64_t, int64_t>> changes;  // (tick, bytes)
  changes.reserve(2 * requests.size());
  for (const ArenaRequest& request : requests) {
    changes.emplace_back(request.lifetime.first_tick, request.bytes);
    changes.emplace_back(request.lifetime.last_tick + 1, -request.bytes);
  }
  std::sort(changes.begin(), changes.end());  // at one tick, what leaves comes before what arrives
  int64_t live = 0;
  int64_t most = 0;
  for (const auto& change : changes) {
    live += change.second;
    most = std::max(most, live);
  }
  return most;
}

// The lowest offset at which `bytes` fit between the occupied [begin, end) ranges.
int64_t LowestGap(std::vector<std::pair<int64_t, int64_t>> occupied, int64_t bytes) {
  std::sort(occupied.begin(), occupied.end());
  int64_t offset = 0;
  for (const auto& range : occupied) {
    if (range.first - offset >= bytes) break;
    offset = std::max(offset, range.second);
  }
  return offset;
}

}  // namespace

ArenaPlan PlaceGreedyBySize(const std::vector<ArenaRequest>& requests) {
  std::vector<size_t> largest_first(requests.size());
  std::iota(largest_first.begin(), largest_first.end(), size_t{0});
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [&](size_t a, size_t b) { return requests[a].bytes > requests[b].bytes; });

  ArenaPlan plan;
  plan.offsets.assign(requests.size(), 0);
  plan.lower_bound_bytes = MostLiveBytes(requests);
  for (size_t placed = 0; placed < largest_first.size(); ++placed) {
    const size_t index = largest_first[placed];
    std::vector<std::pair<int64_t, int64_t>> occupied;
    for (size_t earlier = 0; earlier < placed; ++earlier) {
      const size_t other = largest_first[earlier];
      if (Overlap(requests[other].lifetime, requests[index].lifetime)) {
        occupied.emplace_back(plan.offsets[other], plan.offsets[other] + requests[other].bytes);
      }
    }
    plan.offsets[index] = LowestGap(std::move(occupied), requests[index].bytes);
    plan.bytes = std::max(plan.bytes, plan.offsets[index] + requests[index].bytes);
  }
  return plan;
}

ArenaPlan PlaceLedger(const Ledger& ledger, MemorySpace space) {
  ArenaPlan plan;
  plan.offsets.assign(ledger.entries.size(), -1);
  std::vector<ArenaRequest> passing;  // what does not live the whole step
  std::vector<size_t> passing_entries;
  for (size_t i = 0; i < ledger.entries.size(); ++i) {
    const LedgerEntry& entry = ledger.entries[i];
    if (entry.space != space) continue;
    MUSTER_CHECK(entry.slot_bytes >= 0 && entry.slot_bytes % kArenaAlignment == 0, entry.name, ": ", entry.slot_bytes);
    if (entry.lifetime.first_tick == 0 && entry.lifetime.last_tick == ledger.ticks - 1) {
      plan.offsets[i] = plan.bytes;
      plan.bytes += entry.bytes();
    } else {
      passing.push_back({entry.bytes(), entry.lifetime});
      passing_entries.push_back(i);
    }
  }

  const int64_t persistent_bytes = plan.bytes;
  const ArenaPlan behind = PlaceGreedyBySize(passing);
  for (size_t i = 0; i < passing.size(); ++i) plan.offsets[passing_entries[i]] = persistent_bytes + behind.offsets[i];
  plan.bytes = persistent_bytes + behind.bytes;
  plan.lower_bound_bytes = persistent_bytes + behind.lower_bound_bytes;
  return plan;
}

}  // namespace muster
