// How a job is cut over ranks and micro-batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/plan/model_shape.h"

namespace muster {

enum class Precision { kFp32, kBf16, kFp16 };
enum class Recompute { kNone, kSelective, kFull };
const char* PrecisionName(Precision precision);  // "bf16"
const char* RecomputeName(Recompute recompute);  // "none"

struct Layout {
  int64_t data = 1;
  int64_t tensor = 1;  // with sequence parallelism: each rank has 1/tensor of the rows of the residual stream
  int64_t pipeline = 1;
  int64_t interleave = 1;          // chunks of the model on one rank
  int64_t micro_batch = 1;         // sequences of one micro-batch of one replica
  int64_t accumulation_steps = 1;  // micro-batches of one replica in one optimizer step
  int64_t sequence_length = 0;     // tokens
  Precision precision = Precision::kFp32;
  Recompute recompute = Recompute::kNone;
  int64_t loss_chunk_tokens = 0;  // rows of the head's logits that exist at a time; 0: those of a micro-batch, kept
  bool optimizer_sharding = false;
  bool document_mask = false;       // attention does not cross documents
  int64_t prefetch_steps = 2;       // whole steps of token batches in memory: one computes while the next is read
  bool checkpoint_staging = false;  // host memory for a copy of what a rank saves, written beside training
  int64_t threads_per_rank = 1;

  int64_t ranks() const { return data * tensor * pipeline; }
  int64_t virtual_stages() const { return pipeline * interleave; }
  int64_t global_batch() const { return data * micro_batch * accumulation_steps; }
};

// rank = tp + tensor * (dp + data * pp)
struct RankCoordinate {
  int64_t tensor = 0;
  int64_t data = 0;
  int64_t pipeline = 0;
};
RankCoordinate CoordinateOf(const Layout& layout, int64_t rank);
int64_t RankOf(const Layout& layout, const RankCoordinate& coordinate);

// A run of units: [first, last).
struct UnitRange {
  int64_t first = 0;
  int64_t last = 0;
};

// The runs of units of one rank of the pipeline, of all virtual stages' in model order: chunk c is virtual stage
// c * pipeline + rank. REQUIRES: stages.size() == layout.virtual_stages().
std::vector<UnitRange> ChunksOf(const Layout& layout, const std::vector<UnitRange>& stages, int64_t pipeline_rank);

}  // namespace muster
