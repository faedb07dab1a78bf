// What flows through a rank: batches of tokens, and the residual stream from and to its neighbours.
#include "absl/strings/str_cat.h"
#include "common/plan/ledger_builder.h"

namespace muster {
namespace {

constexpr int64_t kTokenBytes = 4;

}  // namespace

// Tokens and targets, i32 each, of the stages that read them. Validation reads one micro-batch at a time. With a mask
// every stage reads, for each position, where its document begins.
void AddBatches(LedgerBuilder& builder) {
  const Layout& layout = builder.layout();
  if (!builder.has_embedding() && !builder.has_head() && !layout.document_mask) return;
  const int64_t micro_batch_bytes = (layout.document_mask ? 3 : 2) * builder.rows() * kTokenBytes;
  builder.Add("staging/batches", MemoryCategory::kStaging,
              micro_batch_bytes * layout.accumulation_steps * layout.prefetch_steps, 1, builder.WholeStep());
  builder.Add("staging/validation", MemoryCategory::kStaging, micro_batch_bytes, 1, builder.WholeStep());
}

// The input from the stage before is received into the first unit's saved input. The output waits for its send in as
// many slots as micro-batches are in flight. The gradient of the residual stream is updated in place through the units:
// two slots where it comes from or goes to another stage, one being sent or received while the other is worked on.
void AddResidualStream(LedgerBuilder& builder) {
  const int64_t stream_bytes = builder.stream_rows() * builder.shape().hidden * builder.compute_bytes();
  for (const LedgerBuilder::Chunk& chunk : builder.chunks()) {
    const bool first = chunk.units.first == 0;
    const bool last = chunk.units.last == builder.shape().units();
    if (!last) {
      builder.Add(absl::StrCat(kStreamOutput, chunk.index), MemoryCategory::kCommunication, stream_bytes, chunk.slots,
                  builder.Passes());
    }
    if (first && last) {
      builder.Add(absl::StrCat(kStreamGradient, chunk.index), MemoryCategory::kActivations, stream_bytes, 1,
                  builder.Backwards());
    } else {
      builder.Add(absl::StrCat(kStreamGradient, chunk.index), MemoryCategory::kCommunication, stream_bytes, 2,
                  builder.Passes());
    }
  }
}

}  // namespace muster
