// What one rank runs of the model: its chunks. Without interleaving there is one.
//
// Owned by the trainer, for its thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/plan/layout.h"
#include "worker/engine/chunk.h"
#include "worker/model/unit.h"

namespace muster {

class Stage {
 public:
  // `context` is what the rank's units share, but for the slots, which each chunk has of its own; what it refers to
  // and the recorder outlive the stage. `chunks` as ChunksOf (layout.h) gives them.
  Stage(const UnitContext& context, const Layout& layout, int64_t pipeline_rank, const std::vector<UnitRange>& chunks,
        TraceRecorder& recorder);

  // As Chunk::Rebind, all chunks.
  void Rebind(DType compute);

  int64_t size() const { return static_cast<int64_t>(chunks_.size()); }
  Chunk& chunk(int64_t index) const { return *chunks_[static_cast<size_t>(index)]; }

  bool has_embedding() const { return chunks_.front()->has_embedding(); }
  bool has_head() const { return chunks_.back()->has_head(); }
  bool counts_loss() const { return chunks_.back()->counts_loss(); }  // one of the tensor ranks that have the head

 private:
  std::vector<std::unique_ptr<Chunk>> chunks_;
};

}  // namespace muster
