#include "worker/engine/rank_groups.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

int RankAt(const Layout& layout, const RankCoordinate& coordinate) {
  return static_cast<int>(RankOf(layout, coordinate));
}

}  // namespace

absl::StatusOr<RankGroups> SplitGroups(Communicator& world, const ModelShape& model, const Layout& layout) {
  const RankCoordinate mine = CoordinateOf(layout, world.rank());
  RankGroups groups;
  if (layout.tensor > 1) {
    std::vector<int> sharers;
    for (int64_t tensor = 0; tensor < layout.tensor; ++tensor) {
      sharers.push_back(RankAt(layout, {tensor, mine.data, mine.pipeline}));
    }
    MUSTER_ASSIGN_OR_RETURN(groups.tensor,
                            world.Split(sharers, absl::StrCat("tensor/", mine.data, "/", mine.pipeline)));
  }
  if (layout.data > 1) {
    std::vector<int> replicas;
    for (int64_t data = 0; data < layout.data; ++data) {
      replicas.push_back(RankAt(layout, {mine.tensor, data, mine.pipeline}));
    }
    MUSTER_ASSIGN_OR_RETURN(groups.data, world.Split(replicas, absl::StrCat("data/", mine.tensor, "/", mine.pipeline)));
  }
  for (int64_t stage = 0; stage + 1 < layout.pipeline; ++stage) {
    if (mine.pipeline != stage && mine.pipeline != stage + 1) continue;
    const std::vector<int> pair = {RankAt(layout, {mine.tensor, mine.data, stage}),
                                   RankAt(layout, {mine.tensor, mine.data, stage + 1})};
    const std::string edge = absl::StrCat(mine.data, "/", mine.tensor, "/", stage, "-", stage + 1);
    const bool before = mine.pipeline == stage;
    MUSTER_ASSIGN_OR_RETURN((before ? groups.activations_out : groups.activations_in),
                            world.Split(pair, absl::StrCat("pipeline/forward/", edge)));
    MUSTER_ASSIGN_OR_RETURN((before ? groups.gradients_in : groups.gradients_out),
                            world.Split(pair, absl::StrCat("pipeline/backward/", edge)));
  }
  const int64_t last = layout.pipeline - 1;
  if (model.tied && last > 0 && (mine.pipeline == 0 || mine.pipeline == last)) {
    const std::vector<int> ends = {RankAt(layout, {mine.tensor, mine.data, 0}),
                                   RankAt(layout, {mine.tensor, mine.data, last})};
    MUSTER_ASSIGN_OR_RETURN(groups.embedding,
                            world.Split(ends, absl::StrCat("embedding/", mine.data, "/", mine.tensor)));
  }
  return groups;
}

}  // namespace muster
