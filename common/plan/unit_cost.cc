#include "common/plan/unit_cost.h"

namespace muster {

double UnitForwardFlopsPerToken(const ModelShape& shape, const Unit& unit, int64_t sequence_length) {
  const double hidden = static_cast<double>(shape.hidden);
  switch (unit.kind) {
    case UnitKind::kEmbedding:
      return 0;
    case UnitKind::kAttention: {
      const double key_value = static_cast<double>(shape.kv_heads * shape.head_dim());
      const double projections = 2 * hidden * (hidden + 2 * key_value) + 2 * hidden * hidden;
      const double scores_and_values = 4 * hidden * static_cast<double>(sequence_length);
      return projections + scores_and_values;
    }
    case UnitKind::kFeedForward: {
      const double matrices = shape.gated() ? 3 : 2;  // up, down, and the gate
      return 2 * matrices * hidden * static_cast<double>(shape.ffn);
    }
    case UnitKind::kHead:
      return 2 * hidden * static_cast<double>(shape.vocab);
  }
  return 0;
}

std::vector<double> UnitForwardFlopsPerToken(const ModelShape& shape, int64_t sequence_length) {
  std::vector<double> flops;
  for (const Unit& unit : Units(shape)) flops.push_back(UnitForwardFlopsPerToken(shape, unit, sequence_length));
  return flops;
}

}  // namespace muster
