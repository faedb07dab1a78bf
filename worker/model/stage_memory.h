// The arenas of one rank, one for each space, bound to its ledger by name: the only place where the engine's tensors
// come from.
//
// Owned by the rank's trainer, outlives everything bound from it. For the trainer's thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/plan/arena.h"
#include "common/plan/ledger.h"
#include "worker/tensor/arena.h"
#include "worker/tensor/device.h"
#include "worker/tensor/view.h"

namespace muster {

class StageMemory {
 public:
  // Places the ledger and allocates its bytes. RESOURCE_EXHAUSTED when the device refuses.
  static absl::StatusOr<StageMemory> Allocate(Device& device, Ledger ledger);

  // The tensor that the ledger calls `entry`, in that slot. The same entry may be bound more than once.
  // REQUIRES: the ledger has the entry and the slot, and planned exactly this tensor's bytes (rounded to the arena's
  // alignment). In a ledger that left the entry out the tensor is empty.
  Tensor Bind(absl::string_view entry, DType dtype, const std::vector<int64_t>& dims, int64_t slot = 0);

  // All of the entry's bytes, of whatever shape; none where it is left out. REQUIRES: the ledger has the entry, of one
  // slot.
  Tensor BindBytes(absl::string_view entry);

  bool has(absl::string_view entry) const { return index_.contains(entry); }

  const Ledger& ledger() const { return ledger_; }

  // Of device memory.
  const ArenaPlan& plan() const { return device_space().plan; }
  int64_t arena_bytes() const { return device_space().arena.bytes(); }
  int64_t used_arena_bytes() const { return device_space().arena.used_bytes(); }  // the end of the highest tensor bound

  // Bytes bound so far, each slot counted once; equal to the ledger's when the engine uses what was planned.
  std::array<int64_t, kMemoryCategories> bound_bytes() const;

 private:
  struct Space {
    ArenaPlan plan;
    Arena arena;
  };

  StageMemory(Ledger ledger, std::vector<Space> spaces);
  const Space& device_space() const { return spaces_[static_cast<size_t>(MemorySpace::kDevice)]; }
  Tensor BindSlot(size_t index, int64_t slot, DType dtype, const std::vector<int64_t>& dims);

  Ledger ledger_;
  std::vector<Space> spaces_;                       // by MemorySpace
  absl::flat_hash_map<std::string, size_t> index_;  // of an entry, by name
  absl::flat_hash_set<std::string> left_out_;
  std::vector<std::vector<bool>> bound_;  // by entry and slot
};

}  // namespace muster
