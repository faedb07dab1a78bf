#include "worker/model/stage_memory.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace muster {

absl::StatusOr<StageMemory> StageMemory::Allocate(Device& device, Ledger ledger) {
  ArenaPlan plan = PlaceLedger(ledger, MemorySpace::kDevice);
  MUSTER_ASSIGN_OR_RETURN(Arena arena, Arena::Create(device, MemorySpace::kDevice, plan.bytes));
  return StageMemory(std::move(ledger), std::move(plan), std::move(arena));
}

StageMemory::StageMemory(Ledger ledger, ArenaPlan plan, Arena arena)
    : ledger_(std::move(ledger)), plan_(std::move(plan)), arena_(std::move(arena)) {
  for (size_t i = 0; i < ledger_.entries.size(); ++i) {
    const LedgerEntry& entry = ledger_.entries[i];
    MUSTER_CHECK(index_.emplace(entry.name, i).second, "two ledger entries are called ", entry.name);
    bound_.emplace_back(static_cast<size_t>(entry.slots), false);
  }
  left_out_.insert(ledger_.left_out.begin(), ledger_.left_out.end());
}

Tensor StageMemory::Bind(absl::string_view entry, DType dtype, const std::vector<int64_t>& dims, int64_t slot) {
  if (left_out_.contains(entry)) return Tensor();
  const auto found = index_.find(entry);
  MUSTER_CHECK(found != index_.end(), "the ledger has no entry ", entry);
  const Tensor tensor = BindSlot(found->second, slot, dtype, dims);
  const int64_t planned = ledger_.entries[found->second].slot_bytes;
  MUSTER_CHECK((tensor.bytes() + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment == planned, entry, " takes ",
               tensor.bytes(), " bytes, planned were ", planned);
  return tensor;
}

Tensor StageMemory::BindBytes(absl::string_view entry) {
  if (left_out_.contains(entry)) return Tensor();
  const auto found = index_.find(entry);
  MUSTER_CHECK(found != index_.end(), "the ledger has no entry ", entry);
  const LedgerEntry& planned = ledger_.entries[found->second];
  MUSTER_CHECK(planned.slots == 1, entry, " has ", planned.slots, " slots");
  return BindSlot(found->second, 0, DType::kU8, {planned.slot_bytes});
}

Tensor StageMemory::BindRun(MemoryCategory category) {
  int64_t first = -1;
  int64_t end = 0;
  for (size_t i = 0; i < ledger_.entries.size(); ++i) {
    const LedgerEntry& entry = ledger_.entries[i];
    if (entry.category != category) continue;
    if (first < 0) first = end = plan_.offsets[i];
    MUSTER_CHECK(plan_.offsets[i] == end, entry.name, " does not follow the ", MemoryCategoryName(category), " before");
    end += entry.bytes();
  }
  MUSTER_CHECK(first >= 0, "the ledger has no ", MemoryCategoryName(category));
  return arena_.Bind(first, DType::kU8, {end - first});
}

Tensor StageMemory::BindSlot(size_t index, int64_t slot, DType dtype, const std::vector<int64_t>& dims) {
  const LedgerEntry& entry = ledger_.entries[index];
  MUSTER_CHECK(0 <= slot && slot < entry.slots, "slot ", slot, " of ", entry.slots, " of ", entry.name);
  bound_[index][static_cast<size_t>(slot)] = true;
  return arena_.Bind(plan_.offsets[index] + slot * entry.slot_bytes, dtype, dims);
}

std::array<int64_t, kMemoryCategories> StageMemory::bound_bytes() const {
  std::array<int64_t, kMemoryCategories> bytes{};
  for (size_t i = 0; i < ledger_.entries.size(); ++i) {
    const LedgerEntry& entry = ledger_.entries[i];
    for (const bool slot_bound : bound_[i]) {
      if (slot_bound) bytes[static_cast<size_t>(entry.category)] += entry.slot_bytes;
    }
  }
  return bytes;
}

}  // namespace muster
