// The tensor ledger: every byte that one rank of one layout allocates, listed before anything runs. The planner sums
// it, the arena places it, and the engine binds its tensors to the offsets that the arena gave. There is no second
// list.
//
// Plain data, no I/O, thread-compatible. The same inputs give the same ledger on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/plan/layout.h"
#include "common/plan/model_shape.h"

namespace muster {

enum class MemoryCategory {
  kParameters,      // what forward and backward read, in the compute type
  kGradients,       // fp32 accumulators
  kOptimizerState,  // fp32 master weights (when the compute type is not fp32) and both moments
  kActivations,     // saved from forward to backward, and transients of one unit
  kLogits,
  kCommunication,  // pipeline and reduction buffers
  kWorkspace,      // matmul scratchpads and the like: fixed entries per device kind
  kStaging,        // batches of tokens, checkpoint staging
};
inline constexpr int kMemoryCategories = 8;
const char* MemoryCategoryName(MemoryCategory category);  // "optimizer_state"

enum class MemorySpace { kDevice, kPinned, kHost };

// A rank's step as a line of ticks: forward of each of its units, backward of each in reverse, then the reduction of
// gradients, then the optimizer. Closed interval.
struct Lifetime {
  int64_t first_tick = 0;
  int64_t last_tick = 0;
};

struct LedgerEntry {
  std::string name;  // "parameter/layer.0.ffn.up.weight", "saved/0.attention/qkv", "transient/0.ffn/d_up"
  MemoryCategory category = MemoryCategory::kActivations;
  MemorySpace space = MemorySpace::kDevice;
  int64_t slot_bytes = 0;  // one slot, a multiple of kArenaAlignment
  int64_t slots = 1;       // micro-batch i uses slot i mod slots
  Lifetime lifetime;       // of the whole entry
  std::optional<Lifetime> again =
      std::nullopt;  // a second one, of what forward leaves behind and backward computes again

  int64_t bytes() const { return slot_bytes * slots; }
};

inline constexpr int64_t kArenaAlignment = 256;  // bytes; cuBLASLt and TMA want 16 to 128, a cache line is 64

// A tied token embedding has two gradient accumulators, the embedding's "gradient/embedding.token.weight" and the
// head's, which are added once per step. On a pipeline of several stages each end also receives the other's
// accumulator.
inline constexpr char kTiedParameter[] = "embedding.token.weight";
inline constexpr char kTiedHeadGradient[] = "gradient/embedding.token.weight@head";
inline constexpr char kTiedPeerGradient[] = "communication/tied_gradient";

// Scratch of the reduction over replicas (reduction_plan.h), and of the sums over a tensor group.
inline constexpr char kReductionScratch[] = "communication/reduction";
inline constexpr char kTensorGradients[] = "communication/tensor_gradients";

// Where a checkpoint is copied to before it is written, beside training.
inline constexpr char kCheckpointStaging[] = "staging/checkpoint";

// The residual stream that leaves chunk N, "communication/output/N", and its gradient, "stream/gradient/N".
inline constexpr char kStreamOutput[] = "communication/output/";
inline constexpr char kStreamGradient[] = "stream/gradient/";

// Cosines and sines of the rotary positions, f32 (sequence, head_dim), filled once.
inline constexpr char kRopeTable[] = "workspace/rope";

// With tensor parallelism, (T, h) each: all rows of the residual stream, gathered from the tensor group or on their way
// to be summed over it, and the ranks' parts of a sum.
inline constexpr char kTensorRows[] = "communication/tensor_rows";
inline constexpr char kTensorParts[] = "communication/tensor_parts";

struct Ledger {
  std::vector<LedgerEntry> entries;
  int64_t ticks = 0;
  // Names of what only training has, where nothing is trained (forward_ledger.h). Units bind them to empty tensors.
  std::vector<std::string> left_out;

  int64_t bytes(MemoryCategory category) const;
};

// The parameters whose values the rank of these chunks (layout.h) holds, in the order of the model: its units' own and,
// for a tied head, the token embedding.
std::vector<ParameterInfo> ChunkParameters(const ModelShape& shape, const std::vector<UnitRange>& chunks);

// The ledger of `rank`, which runs these chunks of the model.
// REQUIRES: shape and layout pass their checks; units within the model.
Ledger BuildLedger(const ModelShape& shape, const Layout& layout, const std::vector<UnitRange>& chunks, int64_t rank);

}  // namespace muster
