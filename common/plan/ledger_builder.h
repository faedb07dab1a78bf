// The ledger of one rank in the making: what its parts (ledger_state.cc, ledger_units.cc, ledger_stream.cc) share. Only
// for them; everyone else includes ledger.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/plan/layout.h"
#include "common/plan/ledger.h"
#include "common/plan/model_shape.h"

namespace muster {

// Ticks of n units over all chunks, in the order of the chunks: forward 0 .. n-1, backward n .. 2n-1 in reverse,
// reduction 2n, optimizer 2n+1.
class LedgerBuilder {
 public:
  // A chunk's units, and how many of its micro-batches are between forward and backward at the most.
  struct Chunk {
    int64_t index = 0;
    UnitRange units;
    int64_t slots = 1;
  };

  LedgerBuilder(const ModelShape& shape, const Layout& layout, const std::vector<UnitRange>& chunks, int64_t rank);

  const ModelShape& shape() const { return shape_; }
  const Layout& layout() const { return layout_; }
  const RankCoordinate& coordinate() const { return coordinate_; }
  const std::vector<Chunk>& chunks() const { return chunks_; }
  const Ledger& ledger() const { return ledger_; }

  bool has_embedding() const { return chunks_.front().units.first == 0; }
  bool has_head() const { return chunks_.back().units.last == shape_.units(); }
  bool has(UnitKind kind) const;

  int64_t rows() const { return layout_.micro_batch * layout_.sequence_length; }  // T, of one micro-batch
  int64_t stream_rows() const { return rows() / layout_.tensor; }                 // of the residual stream on this rank
  int64_t compute_bytes() const { return layout_.precision == Precision::kFp32 ? 4 : 2; }

  Lifetime WholeStep() const { return {0, ledger_.ticks - 1}; }
  Lifetime Passes() const { return {0, 2 * unit_count_ - 1}; }
  Lifetime Backwards() const { return {unit_count_, 2 * unit_count_ - 1}; }
  Lifetime Reduction() const { return {2 * unit_count_, 2 * unit_count_}; }
  int64_t ForwardTick(const Chunk& chunk, const Unit& unit) const;
  int64_t BackwardTick(const Chunk& chunk, const Unit& unit) const;

  // Nothing is added for 0 bytes or 0 slots.
  void Add(std::string name, MemoryCategory category, int64_t slot_bytes, int64_t slots, Lifetime lifetime,
           MemorySpace space = MemorySpace::kDevice);

  // Device memory of one slot that lives in a forward and again in a backward.
  void AddRebuilt(std::string name, MemoryCategory category, int64_t bytes, Lifetime forward, Lifetime backward);

  Ledger Take() && { return std::move(ledger_); }

 private:
  const ModelShape& shape_;
  const Layout& layout_;
  const RankCoordinate coordinate_;
  std::vector<Chunk> chunks_;
  std::vector<int64_t> first_ticks_;  // of each chunk's first unit
  int64_t unit_count_ = 0;
  Ledger ledger_;
};

// ledger_state.cc
void AddModelState(LedgerBuilder& builder);  // parameters, gradients, optimizer state
void AddReduction(LedgerBuilder& builder);
void AddCheckpointStaging(LedgerBuilder& builder);

// ledger_units.cc
void AddWorkspaces(LedgerBuilder& builder);
void AddUnits(LedgerBuilder& builder);

// ledger_stream.cc
void AddBatches(LedgerBuilder& builder);
void AddResidualStream(LedgerBuilder& builder);  // between stages

}  // namespace muster
