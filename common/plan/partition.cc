#include "common/plan/partition.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

enum class Objective { kSmallestMaximum, kSmallestSquares };

// The best cuts of every prefix of the units by one objective, among those without a stage dearer than `maximum`.
class PrefixTable {
 public:
  PrefixTable(const std::vector<double>& unit_costs, int64_t stages, const StageFits& fits, Objective objective,
              double maximum)
      : units_(static_cast<int64_t>(unit_costs.size())), stages_(stages), objective_(objective), maximum_(maximum) {
    before_.assign(unit_costs.size() + 1, 0);
    for (int64_t i = 0; i < units_; ++i) before_[i + 1] = before_[i] + unit_costs[i];
    totals_.assign(static_cast<size_t>((stages + 1) * (units_ + 1)), kImpossible);
    first_of_last_.assign(totals_.size(), -1);
    totals_[Cell(0, 0)] = 0;
    for (int64_t stage = 1; stage <= stages; ++stage) {
      for (int64_t last = stage; last <= units_ - (stages - stage); ++last) FindBestStart(stage, last, fits);
    }
  }

  double Total() const { return totals_[Cell(stages_, units_)]; }

  std::vector<UnitRange> Cut() const {
    std::vector<UnitRange> cut(stages_);
    int64_t last = units_;
    for (int64_t stage = stages_; stage > 0; --stage) {
      const int64_t first = first_of_last_[Cell(stage, last)];
      cut[stage - 1] = {first, last};
      last = first;
    }
    return cut;
  }

 private:
  // Where the last of `stage` stages over the first `last` units best begins. It grows from one unit on; once it is too
  // dear or does not fit, so are all longer ones. Of equal totals the earliest start stays.
  void FindBestStart(int64_t stage, int64_t last, const StageFits& fits) {
    double& best = totals_[Cell(stage, last)];
    for (int64_t first = last - 1; first >= stage - 1; --first) {
      const double cost = before_[last] - before_[first];
      if (cost > maximum_ || (objective_ == Objective::kSmallestMaximum && cost > best)) return;
      const double so_far = totals_[Cell(stage - 1, first)];
      const double total = objective_ == Objective::kSmallestMaximum ? std::max(so_far, cost) : so_far + cost * cost;
      if (so_far == kImpossible || total > best) continue;
      if (fits && !fits(stage - 1, {first, last})) return;
      best = total;
      first_of_last_[Cell(stage, last)] = first;
    }
  }

  size_t Cell(int64_t stage, int64_t units) const { return static_cast<size_t>(stage * (units_ + 1) + units); }

  const int64_t units_;
  const int64_t stages_;
  const Objective objective_;
  const double maximum_;
  std::vector<double> before_;          // cost of the units before each place
  std::vector<double> totals_;          // (stages + 1, units + 1)
  std::vector<int64_t> first_of_last_;  // the first unit of the last stage of that cut
};

}  // namespace

absl::StatusOr<std::vector<UnitRange>> PartitionUnits(const std::vector<double>& unit_costs, int64_t stages,
                                                      const StageFits& fits) {
  if (stages < 1 || stages > static_cast<int64_t>(unit_costs.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(unit_costs.size(), " units cannot be cut into ", stages, " stages of at least one unit"));
  }
  const double maximum =
      PrefixTable(unit_costs, stages, fits, Objective::kSmallestMaximum, std::numeric_limits<double>::max()).Total();
  if (maximum == kImpossible) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no cut of ", unit_costs.size(), " units into ", stages, " stages fits the memory of its ranks"));
  }
  return PrefixTable(unit_costs, stages, fits, Objective::kSmallestSquares, maximum).Cut();
}

std::vector<double> StageCosts(const std::vector<double>& unit_costs, const std::vector<UnitRange>& stages) {
  std::vector<double> costs;
  costs.reserve(stages.size());
  for (const UnitRange& stage : stages) {
    double cost = 0;
    for (int64_t unit = stage.first; unit < stage.last; ++unit) cost += unit_costs[unit];
    costs.push_back(cost);
  }
  return costs;
}

}  // namespace muster
