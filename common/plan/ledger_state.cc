// Parameters, gradients and optimizer state of a rank, and what their reduction takes.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/plan/device_constants.h"
#include "common/plan/ledger_builder.h"

namespace muster {
namespace {

constexpr int64_t kFloatBytes = 4;

std::vector<UnitRange> UnitsOf(const LedgerBuilder& builder) {
  std::vector<UnitRange> chunks;
  for (const LedgerBuilder::Chunk& chunk : builder.chunks()) chunks.push_back(chunk.units);
  return chunks;
}

int64_t TiedBytes(const ModelShape& shape) { return shape.vocab * shape.hidden * kFloatBytes; }

}  // namespace

void AddModelState(LedgerBuilder& builder) {
  const std::vector<ParameterInfo> parameters = ChunkParameters(builder.shape(), UnitsOf(builder));
  for (const ParameterInfo& parameter : parameters) {
    builder.Add(absl::StrCat("parameter/", parameter.name), MemoryCategory::kParameters,
                parameter.elements() * builder.compute_bytes(), 1, builder.WholeStep());
  }
  for (const ParameterInfo& parameter : parameters) {
    // The head of a later stage has an accumulator of its own.
    if (parameter.name == kTiedParameter && !builder.has_embedding()) continue;
    builder.Add(absl::StrCat("gradient/", parameter.name), MemoryCategory::kGradients,
                parameter.elements() * kFloatBytes, 1, builder.WholeStep());
  }
  if (builder.shape().tied && builder.has_head()) {
    builder.Add(kTiedHeadGradient, MemoryCategory::kGradients, TiedBytes(builder.shape()), 1, builder.WholeStep());
  }
  std::vector<std::string> states = {"first", "second"};
  if (builder.layout().precision != Precision::kFp32) states.insert(states.begin(), "master");
  for (const std::string& state : states) {
    for (const ParameterInfo& parameter : parameters) {
      builder.Add(absl::StrCat("optimizer/", state, "/", parameter.name), MemoryCategory::kOptimizerState,
                  parameter.elements() * kFloatBytes, 1, builder.WholeStep());
    }
  }
}

void AddReduction(LedgerBuilder& builder) {
  const Layout& layout = builder.layout();
  if (layout.data > 1) {
    const int64_t gradient_bytes = builder.ledger().bytes(MemoryCategory::kGradients);
    builder.Add("communication/reduction", MemoryCategory::kCommunication,
                GradientReducerScratchBytes(gradient_bytes / kFloatBytes, layout.data), 1, builder.Reduction());
  }
  // A tied weight on two stages: the other's accumulator, once both are reduced.
  if (builder.shape().tied && builder.has_embedding() != builder.has_head()) {
    builder.Add(kTiedPeerGradient, MemoryCategory::kCommunication, TiedBytes(builder.shape()), 1, builder.Reduction());
  }
}

}  // namespace muster
