#include "common/plan/layout.h"

#include "common/base/check.h"

namespace muster {

const char* PrecisionName(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return "fp32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp16:
      return "fp16";
  }
  return "unknown";
}

const char* RecomputeName(Recompute recompute) {
  switch (recompute) {
    case Recompute::kNone:
      return "none";
    case Recompute::kSelective:
      return "selective";
    case Recompute::kFull:
      return "full";
  }
  return "unknown";
}

RankCoordinate CoordinateOf(const Layout& layout, int64_t rank) {
  MUSTER_CHECK(rank >= 0 && rank < layout.ranks(), "rank ", rank, " of ", layout.ranks());
  return {rank % layout.tensor, rank / layout.tensor % layout.data, rank / (layout.tensor * layout.data)};
}

int64_t RankOf(const Layout& layout, const RankCoordinate& coordinate) {
  MUSTER_CHECK(coordinate.tensor >= 0 && coordinate.tensor < layout.tensor, "tensor ", coordinate.tensor);
  MUSTER_CHECK(coordinate.data >= 0 && coordinate.data < layout.data, "data ", coordinate.data);
  MUSTER_CHECK(coordinate.pipeline >= 0 && coordinate.pipeline < layout.pipeline, "pipeline ", coordinate.pipeline);
  return coordinate.tensor + layout.tensor * (coordinate.data + layout.data * coordinate.pipeline);
}

std::vector<UnitRange> ChunksOf(const Layout& layout, const std::vector<UnitRange>& stages, int64_t pipeline_rank) {
  MUSTER_CHECK(static_cast<int64_t>(stages.size()) == layout.virtual_stages(), stages.size(), " stages, not ",
               layout.virtual_stages());
  std::vector<UnitRange> chunks;
  for (int64_t chunk = 0; chunk < layout.interleave; ++chunk) {
    chunks.push_back(stages[static_cast<size_t>(chunk * layout.pipeline + pipeline_rank)]);
  }
  return chunks;
}

}  // namespace muster
