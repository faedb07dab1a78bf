#include "worker/model/make_unit.h"

#include "common/base/check.h"
#include "worker/model/attention_unit.h"
#include "worker/model/embedding_unit.h"
#include "worker/model/feed_forward_unit.h"
#include "worker/model/head_unit.h"

namespace muster {

std::unique_ptr<ModelUnit> MakeUnit(const UnitContext& context, const Unit& unit) {
  switch (unit.kind) {
    case UnitKind::kEmbedding:
      return MakeEmbeddingUnit(context, unit);
    case UnitKind::kAttention:
      return MakeAttentionUnit(context, unit);
    case UnitKind::kFeedForward:
      return MakeFeedForwardUnit(context, unit);
    case UnitKind::kHead:
      return std::make_unique<HeadUnit>(context, unit);
  }
  MUSTER_CHECK(false, "unit ", unit.name(), " is of no kind");
  return nullptr;
}

}  // namespace muster
