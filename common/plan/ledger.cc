#include "common/plan/ledger.h"

#include <algorithm>
#include <utility>

#include "common/plan/ledger_builder.h"

namespace muster {

const char* MemoryCategoryName(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::kParameters:
      return "parameters";
    case MemoryCategory::kGradients:
      return "gradients";
    case MemoryCategory::kOptimizerState:
      return "optimizer_state";
    case MemoryCategory::kActivations:
      return "activations";
    case MemoryCategory::kLogits:
      return "logits";
    case MemoryCategory::kCommunication:
      return "communication";
    case MemoryCategory::kWorkspace:
      return "workspace";
    case MemoryCategory::kStaging:
      return "staging";
  }
  return "unknown";
}

int64_t Ledger::bytes(MemoryCategory category) const {
  int64_t total = 0;
  for (const LedgerEntry& entry : entries) {
    if (entry.category == category) total += entry.bytes();
  }
  return total;
}

std::vector<ParameterInfo> ChunkParameters(const ModelShape& shape, const std::vector<UnitRange>& chunks) {
  std::vector<ParameterInfo> result;
  for (ParameterInfo& parameter : Parameters(shape)) {
    const bool own = std::any_of(chunks.begin(), chunks.end(), [&](const UnitRange& units) {
      return parameter.unit >= units.first && parameter.unit < units.last;
    });
    const bool tied = shape.tied && chunks.back().last == shape.units() && parameter.name == kTiedParameter;
    if (own || tied) result.push_back(std::move(parameter));
  }
  return result;
}

Ledger BuildLedger(const ModelShape& shape, const Layout& layout, const std::vector<UnitRange>& chunks, int64_t rank) {
  LedgerBuilder builder(shape, layout, chunks, rank);
  AddModelState(builder);
  AddWorkspaces(builder);
  AddBatches(builder);
  AddUnits(builder);
  AddResidualStream(builder);
  AddReduction(builder);
  AddCheckpointStaging(builder);
  return std::move(builder).Take();
}

}  // namespace muster
