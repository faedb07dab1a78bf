#include "common/plan/partition.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

// The best cuts of every prefix of the units, for one way of adding up the costs of stages.
class PrefixTable {
 public:
  // `add(total, cost)` is the total of a cut to which a stage of this cost is appended, or infinity if it may not be.
  using Add = std::function<double(double total, double cost)>;

  PrefixTable(const std::vector<double>& unit_costs, int64_t stages, const StageFits& fits, const Add& add)
      : units_(static_cast<int64_t>(unit_costs.size())), stages_(stages) {
    std::vector<double> before(units_ + 1, 0);  // cost of the units before each place
    for (int64_t i = 0; i < units_; ++i) before[i + 1] = before[i] + unit_costs[i];
    totals_.assign((stages + 1) * (units_ + 1), kImpossible);
    first_of_last_.assign(totals_.size(), -1);
    totals_[Cell(0, 0)] = 0;
    for (int64_t stage = 1; stage <= stages; ++stage) {
      for (int64_t last = stage; last <= units_ - (stages - stage); ++last) {
        // Earliest first, so that of equal totals the earliest cut stays.
        for (int64_t first = stage - 1; first < last; ++first) {
          const double so_far = totals_[Cell(stage - 1, first)];
          if (so_far == kImpossible) continue;
          const double total = add(so_far, before[last] - before[first]);
          if (total >= totals_[Cell(stage, last)]) continue;
          if (fits && !fits(stage - 1, {first, last})) continue;
          totals_[Cell(stage, last)] = total;
          first_of_last_[Cell(stage, last)] = first;
        }
      }
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
  size_t Cell(int64_t stage, int64_t units) const { return static_cast<size_t>(stage * (units_ + 1) + units); }

  int64_t units_;
  int64_t stages_;
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
  const PrefixTable smallest_maximum(unit_costs, stages, fits,
                                     [](double total, double cost) { return std::max(total, cost); });
  const double maximum = smallest_maximum.Total();
  if (maximum == kImpossible) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no cut of ", unit_costs.size(), " units into ", stages, " stages fits the memory of its ranks"));
  }
  const PrefixTable most_even(unit_costs, stages, fits, [maximum](double total, double cost) {
    return cost <= maximum ? total + cost * cost : kImpossible;
  });
  return most_even.Cut();
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
