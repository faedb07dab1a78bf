#include "worker/engine/diagnosis.h"

#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// The first output that is not finite on one rank.
struct Finding {
  int64_t micro_batch = std::numeric_limits<int64_t>::max();  // none
  int64_t unit = 0;

  bool found() const { return micro_batch != std::numeric_limits<int64_t>::max(); }
  bool Before(const Finding& other) const {
    return std::tie(micro_batch, unit) < std::tie(other.micro_batch, other.unit);
  }
};

absl::StatusOr<std::vector<Finding>> FindEverywhere(Communicator& world, const EngineConfig& config, Pipeline& pipeline,
                                                    const Pipeline::MicroBatchAt& at) {
  Finding mine;
  const auto find = [&](Chunk& chunk, int64_t micro_batch, const MicroBatch& batch) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const std::optional<Unit> unit, chunk.FirstNonFiniteUnit(batch));
    if (!unit.has_value()) return absl::OkStatus();
    const Finding found = {.micro_batch = micro_batch, .unit = unit->index};
    if (found.Before(mine)) mine = found;
    return absl::OkStatus();
  };
  MUSTER_RETURN_IF_ERROR(pipeline.Evaluate(config.layout.accumulation_steps, at, find));
  std::vector<Finding> all(static_cast<size_t>(world.size()));
  MUSTER_RETURN_IF_ERROR(AllGather(world, {reinterpret_cast<const std::byte*>(&mine), sizeof(mine)},
                                   {reinterpret_cast<std::byte*>(all.data()), all.size() * sizeof(mine)}));
  return all;
}

// Gradients flow from the last unit to the first, so the last unit whose gradient is not finite was the first to be.
std::string NameOfGradient(const EngineConfig& config, const StepVerdict& verdict) {
  const std::vector<ParameterInfo> parameters = Parameters(config.model);
  for (size_t i = parameters.size(); i-- > 0;) {
    if (std::isfinite(verdict.squares[i])) continue;
    const int64_t unit = parameters[i].unit;
    int64_t stage = 0;
    while (config.stages[static_cast<size_t>(stage)].last <= unit) ++stage;
    const int64_t rank = RankOf(config.layout, {.tensor = 0, .data = 0, .pipeline = stage % config.layout.pipeline});
    return absl::StrCat("the gradient of ", parameters[i].name, " (unit ",
                        Units(config.model)[static_cast<size_t>(unit)].name(), " on rank ", rank,
                        config.layout.data > 1 ? " and its replicas" : "", ") is not finite");
  }
  return absl::StrCat("the gradient norm is ", verdict.gradient_norm);
}

}  // namespace

absl::StatusOr<std::string> ExplainNonFinite(Communicator& world, const EngineConfig& config, Pipeline& pipeline,
                                             const Pipeline::MicroBatchAt& at, const StepVerdict& verdict) {
  if (verdict.counted_targets == 0) return std::string("no target of the global batch counts");
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Finding> findings, FindEverywhere(world, config, pipeline, at));
  size_t first = 0;
  for (size_t rank = 1; rank < findings.size(); ++rank) {
    if (findings[rank].Before(findings[first])) first = rank;
  }
  const Finding& finding = findings[first];
  const std::string where =
      finding.found()
          ? absl::StrCat("the output of unit ", Units(config.model)[static_cast<size_t>(finding.unit)].name(),
                         " on rank ", first, " is not finite, first in micro-batch ", finding.micro_batch)
          : NameOfGradient(config, verdict);
  return absl::StrCat(where, " (loss ", verdict.loss, ", gradient norm ", verdict.gradient_norm, ")");
}

}  // namespace muster
