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

bool Overlap(const ArenaRequest& a, const ArenaRequest& b) {
  return Overlap(a.lifetime, b.lifetime) || (a.again.has_value() && Overlap(*a.again, b.lifetime)) ||
         (b.again.has_value() && Overlap(a.lifetime, *b.again)) ||
         (a.again.has_value() && b.again.has_value() && Overlap(*a.again, *b.again));
}

// The most bytes that are live at once. What ends at a tick is still live in it.
int64_t MostLiveBytes(const std::vector<ArenaRequest>& requests) {
  std::vector<std::pair<int64_t, int64_t>> changes;  // (tick, bytes)
  changes.reserve(4 * requests.size());
  const auto add = [&](const Lifetime& lifetime, int64_t bytes) {
    changes.emplace_back(lifetime.first_tick, bytes);
    changes.emplace_back(lifetime.last_tick + 1, -bytes);
  };
  for (const ArenaRequest& request : requests) {
    add(request.lifetime, request.bytes);
    if (request.again.has_value()) add(*request.again, request.bytes);
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

// A request that has its place. Kept sorted by offset.
struct Placed {
  int64_t offset = 0;
  int64_t end = 0;
  const ArenaRequest* request = nullptr;
};

// The lowest offset that is free for the whole lifetime of `request`.
int64_t LowestFreeOffset(const std::vector<Placed>& by_offset, const ArenaRequest& request) {
  int64_t offset = 0;
  for (const Placed& placed : by_offset) {
    if (!Overlap(*placed.request, request)) continue;
    if (placed.offset - offset >= request.bytes) break;
    offset = std::max(offset, placed.end);
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
  std::vector<Placed> by_offset;
  by_offset.reserve(requests.size());
  for (size_t index : largest_first) {
    const ArenaRequest& request = requests[index];
    const int64_t offset = LowestFreeOffset(by_offset, request);
    const auto behind = std::upper_bound(by_offset.begin(), by_offset.end(), offset,
                                         [](int64_t value, const Placed& placed) { return value < placed.offset; });
    by_offset.insert(behind, {offset, offset + request.bytes, &request});
    plan.offsets[index] = offset;
    plan.bytes = std::max(plan.bytes, offset + request.bytes);
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
      passing.push_back({entry.bytes(), entry.lifetime, entry.again});
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
