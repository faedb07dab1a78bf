#include "worker/engine/stage.h"

#include "common/plan/schedule.h"

namespace muster {

Stage::Stage(const UnitContext& context, const Layout& layout, int64_t pipeline_rank,
             const std::vector<UnitRange>& chunks, TraceRecorder& recorder) {
  for (size_t i = 0; i < chunks.size(); ++i) {
    const int64_t index = static_cast<int64_t>(i);
    UnitContext of_chunk = context;
    of_chunk.slots = InFlightMicroBatches(layout, pipeline_rank, index);
    chunks_.push_back(std::make_unique<Chunk>(of_chunk, index, chunks[i], recorder));
  }
}

void Stage::Rebind(DType compute) {
  for (const std::unique_ptr<Chunk>& chunk : chunks_) chunk->Rebind(compute);
}

}  // namespace muster
