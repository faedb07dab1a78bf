#include "common/plan/ledger_builder.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/plan/schedule.h"

namespace muster {
namespace {

int64_t RoundUp(int64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

}  // namespace

LedgerBuilder::LedgerBuilder(const ModelShape& shape, const Layout& layout, const std::vector<UnitRange>& chunks,
                             int64_t rank)
    : shape_(shape), layout_(layout), coordinate_(CoordinateOf(layout, rank)) {
  MUSTER_CHECK(!chunks.empty());
  for (const UnitRange& units : chunks) {
    MUSTER_CHECK(0 <= units.first && units.first < units.last && units.last <= shape.units(), "units ", units.first,
                 " to ", units.last, " of ", shape.units());
    const int64_t index = static_cast<int64_t>(chunks_.size());
    chunks_.push_back({index, units, InFlightMicroBatches(layout, coordinate_.pipeline, index)});
    first_ticks_.push_back(unit_count_);
    unit_count_ += units.last - units.first;
  }
  ledger_.ticks = 2 * unit_count_ + 2;
}

bool LedgerBuilder::has(UnitKind kind) const {
  const std::vector<Unit> units = Units(shape_);
  return std::any_of(chunks_.begin(), chunks_.end(), [&](const Chunk& chunk) {
    return std::any_of(units.begin() + chunk.units.first, units.begin() + chunk.units.last,
                       [&](const Unit& unit) { return unit.kind == kind; });
  });
}

int64_t LedgerBuilder::ForwardTick(const Chunk& chunk, const Unit& unit) const {
  return first_ticks_[static_cast<size_t>(chunk.index)] + unit.index - chunk.units.first;
}

int64_t LedgerBuilder::BackwardTick(const Chunk& chunk, const Unit& unit) const {
  return 2 * unit_count_ - 1 - ForwardTick(chunk, unit);
}

void LedgerBuilder::Add(std::string name, MemoryCategory category, int64_t slot_bytes, int64_t slots, Lifetime lifetime,
                        MemorySpace space) {
  if (slot_bytes == 0 || slots == 0) return;
  ledger_.entries.push_back({std::move(name), category, space, RoundUp(slot_bytes), slots, lifetime});
}

void LedgerBuilder::AddRebuilt(std::string name, MemoryCategory category, int64_t bytes, Lifetime forward,
                               Lifetime backward) {
  ledger_.entries.push_back(
      {std::move(name), category, MemorySpace::kDevice, RoundUp(bytes), /*slots=*/1, forward, backward});
}

}  // namespace muster
