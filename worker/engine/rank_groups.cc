#include "worker/engine/rank_groups.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

int WorldRank(const Layout& layout, const RankCoordinate& coordinate) {
  return static_cast<int>(RankOf(layout, coordinate));
}

std::vector<int> TensorRanks(const Layout& layout, RankCoordinate coordinate) {
  std::vector<int> ranks;
  for (coordinate.tensor = 0; coordinate.tensor < layout.tensor; ++coordinate.tensor) {
    ranks.push_back(WorldRank(layout, coordinate));
  }
  return ranks;
}

std::vector<int> Replicas(const Layout& layout, RankCoordinate coordinate) {
  std::vector<int> ranks;
  for (coordinate.data = 0; coordinate.data < layout.data; ++coordinate.data) {
    ranks.push_back(WorldRank(layout, coordinate));
  }
  return ranks;
}

int RankOfStage(const Layout& layout, RankCoordinate coordinate, int64_t virtual_stage) {
  coordinate.pipeline = virtual_stage % layout.pipeline;
  return WorldRank(layout, coordinate);
}

// Every virtual stage is joined to the next, in the order of the model: no two ranks wait for each other's groups.
absl::Status SplitEdges(Communicator& world, const Layout& layout, const RankCoordinate& mine, RankGroups& groups) {
  groups.chunks.resize(static_cast<size_t>(layout.interleave));
  for (int64_t stage = 0; stage + 1 < layout.virtual_stages(); ++stage) {
    const int64_t next = stage + 1;
    const std::vector<int> pair = {RankOfStage(layout, mine, stage), RankOfStage(layout, mine, next)};
    if (world.rank() != pair[0] && world.rank() != pair[1]) continue;
    const bool before = world.rank() == pair[0];
    ChunkGroups& chunk = groups.chunks[static_cast<size_t>((before ? stage : next) / layout.pipeline)];
    const std::string edge = absl::StrCat(mine.data, "/", mine.tensor, "/", stage, "-", next);
    MUSTER_ASSIGN_OR_RETURN((before ? chunk.activations_out : chunk.activations_in),
                            world.Split(pair, absl::StrCat("pipeline/forward/", edge)));
    MUSTER_ASSIGN_OR_RETURN((before ? chunk.gradients_in : chunk.gradients_out),
                            world.Split(pair, absl::StrCat("pipeline/backward/", edge)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RankGroups> SplitGroups(Communicator& world, const ModelShape& model, const Layout& layout) {
  const RankCoordinate mine = CoordinateOf(layout, world.rank());
  RankGroups groups;
  if (layout.tensor > 1) {
    MUSTER_ASSIGN_OR_RETURN(
        groups.tensor, world.Split(TensorRanks(layout, mine), absl::StrCat("tensor/", mine.pipeline, "/", mine.data)));
  }
  if (layout.data > 1) {
    MUSTER_ASSIGN_OR_RETURN(
        groups.data, world.Split(Replicas(layout, mine), absl::StrCat("data/", mine.pipeline, "/", mine.tensor)));
  }
  MUSTER_RETURN_IF_ERROR(SplitEdges(world, layout, mine, groups));
  const int64_t last = layout.pipeline - 1;
  if (model.tied && last > 0 && (mine.pipeline == 0 || mine.pipeline == last)) {
    const std::vector<int> ends = {RankOfStage(layout, mine, 0), RankOfStage(layout, mine, last)};
    MUSTER_ASSIGN_OR_RETURN(groups.embedding,
                            world.Split(ends, absl::StrCat("embedding/", mine.data, "/", mine.tensor)));
  }
  return groups;
}

}  // namespace muster
