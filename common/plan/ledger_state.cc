// Parameters, gradients and optimizer state of a rank, what their reduction takes, and where checkpoints are staged.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/plan/ledger_builder.h"
#include "common/plan/parameter_shard.h"
#include "common/plan/reduction_plan.h"

namespace muster {
namespace {

constexpr int64_t kFloatBytes = 4;

std::vector<UnitRange> UnitsOf(const LedgerBuilder& builder) {
  std::vector<UnitRange> chunks;
  for (const LedgerBuilder::Chunk& chunk : builder.chunks()) chunks.push_back(chunk.units);
  return chunks;
}

// The first rank of a tensor group holds at least as much as the others, padding included, and all are planned alike.
ParameterShard LargestShard(const LedgerBuilder& builder, const ParameterInfo& parameter) {
  return ShardOnTensorRank(builder.shape(), parameter, builder.layout().tensor, 0);
}

// Of the pieces, what the replica with the most rows has of them.
int64_t ReplicaElements(const ParameterShard& shard, int64_t data) {
  int64_t elements = 0;
  for (const ShardPiece& piece : shard.pieces) elements += (piece.rows() + data - 1) / data * piece.row_elements();
  return elements;
}

// Of one rank's part of a parameter's optimizer state.
int64_t StateElements(const LedgerBuilder& builder, const ParameterInfo& parameter) {
  const ParameterShard shard = LargestShard(builder, parameter);
  return builder.layout().optimizer_sharding ? ReplicaElements(shard, builder.layout().data) : shard.local_elements();
}

// Received from the other sharers of every piece whose gradients are parts.
int64_t TensorGradientElements(const std::vector<GradientInfo>& gradients) {
  int64_t elements = 0;
  for (const GradientInfo& gradient : gradients) {
    for (const ShardPiece& piece : gradient.shard.pieces) {
      if (piece.partial_gradients) elements += (piece.sharers - 1) * piece.elements();
    }
  }
  return elements;
}

std::vector<GradientInfo> Gradients(const LedgerBuilder& builder) {
  return GradientsOf(builder.shape(), UnitsOf(builder), builder.layout().tensor, builder.coordinate().tensor);
}

bool HasOneEndOfTiedWeight(const LedgerBuilder& builder) {
  return builder.shape().tied && builder.has_embedding() != builder.has_head();
}

}  // namespace

void AddModelState(LedgerBuilder& builder) {
  const std::vector<ParameterInfo> parameters = ChunkParameters(builder.shape(), UnitsOf(builder));
  for (const ParameterInfo& parameter : parameters) {
    builder.Add(absl::StrCat("parameter/", parameter.name), MemoryCategory::kParameters,
                LargestShard(builder, parameter).local_elements() * builder.compute_bytes(), 1, builder.WholeStep());
  }
  for (const GradientInfo& gradient : Gradients(builder)) {
    builder.Add(gradient.entry, MemoryCategory::kGradients, gradient.shard.local_elements() * kFloatBytes, 1,
                builder.WholeStep());
  }
  std::vector<std::string> states = {"first", "second"};
  if (builder.layout().precision != Precision::kFp32) states.insert(states.begin(), "master");
  for (const std::string& state : states) {
    for (const ParameterInfo& parameter : parameters) {
      builder.Add(absl::StrCat("optimizer/", state, "/", parameter.name), MemoryCategory::kOptimizerState,
                  StateElements(builder, parameter) * kFloatBytes, 1, builder.WholeStep());
    }
  }
}

void AddReduction(LedgerBuilder& builder) {
  const Layout& layout = builder.layout();
  // Buckets travel from the last micro-batch's first backward on.
  builder.Add(kReductionScratch, MemoryCategory::kCommunication, ReductionScratchBytes(builder.shape(), layout), 1,
              {builder.Backwards().first_tick, builder.Reduction().last_tick});
  builder.Add(kTensorGradients, MemoryCategory::kCommunication,
              TensorGradientElements(Gradients(builder)) * kFloatBytes, 1, builder.Reduction());
  // A tied weight on two stages: the other's accumulator, or what of it this rank updates, once both are reduced.
  if (HasOneEndOfTiedWeight(builder)) {
    for (const ParameterInfo& parameter : ChunkParameters(builder.shape(), UnitsOf(builder))) {
      if (parameter.name != kTiedParameter) continue;
      builder.Add(kTiedPeerGradient, MemoryCategory::kCommunication, StateElements(builder, parameter) * kFloatBytes, 1,
                  builder.Reduction());
    }
  }
}

// Master weights and both moments of what the rank answers for; a tied weight is saved by the first stage.
void AddCheckpointStaging(LedgerBuilder& builder) {
  if (!builder.layout().checkpoint_staging) return;
  int64_t elements = 0;
  for (const ParameterInfo& parameter : ChunkParameters(builder.shape(), UnitsOf(builder))) {
    if (parameter.name == kTiedParameter && !builder.has_embedding()) continue;
    elements += ReplicaElements(LargestShard(builder, parameter), builder.layout().data);
  }
  builder.Add(kCheckpointStaging, MemoryCategory::kStaging, 3 * elements * kFloatBytes, 1, builder.WholeStep(),
              MemorySpace::kPinned);
}

}  // namespace muster
