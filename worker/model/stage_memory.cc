#include "worker/model/stage_memory.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace muster {

absl::StatusOr<StageMemory> StageMemory::Allocate(Device& device, Ledger ledger) {
  std::vector<Space> spaces;
  for (const MemorySpace space : {MemorySpace::kDevice, MemorySpace::kPinned, MemorySpace::kHost}) {
    ArenaPlan plan = PlaceLedger(ledger, space);
    MUSTER_ASSIGN_OR_RETURN(Arena arena, Arena::Create(device, space, plan.bytes));
    spaces.push_back({std::move(plan), std::move(arena)});
  }
  return StageMemory(std::move(ledger), std::move(spaces));
}

StageMemory::StageMemory(Ledger ledger, std::vector<Space> spaces)
    : ledger_(std::move(ledger)), spaces_(std::move(spaces)) {
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

Tensor StageMemory::BindSlot(size_t index, int64_t slot, DType dtype, const std::vector<int64_t>& dims) {
  const LedgerEntry& entry = ledger_.entries[index];
  MUSTER_CHECK(0 <= slot && slot < entry.slots, "slot ", slot, " of ", entry.slots, " of ", entry.name);
  bound_[index][static_cast<size_t>(slot)] = true;
  Space& space = spaces_[static_cast<size_t>(entry.space)];
  return space.arena.Bind(space.plan.offsets[index] + slot * entry.slot_bytes, dtype, dims);
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
