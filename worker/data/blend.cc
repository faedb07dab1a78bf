#include "worker/data/blend.h"

#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace muster {

absl::StatusOr<Blend> Blend::Make(absl::Span<const double> weights) {
  if (weights.empty()) return absl::InvalidArgumentError("a blend needs at least one dataset");
  double sum = 0;
  for (size_t d = 0; d < weights.size(); ++d) {
    if (!std::isfinite(weights[d]) || weights[d] <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("dataset ", d, " has weight ", weights[d], ", expected more than 0"));
    }
    sum += weights[d];
  }
  for (size_t d = 0; d < weights.size(); ++d) {
    if (weights[d] / sum * kBlendPeriod < 1) {
      return absl::InvalidArgumentError(absl::StrCat("dataset ", d, " has a share of ", weights[d] / sum,
                                                     ", the smallest is 1/", kBlendPeriod,
                                                     "; leave it out or raise its weight"));
    }
  }
  // Each position goes to the dataset that is furthest behind its share, ties to the first: so counts never stray by
  // more than the number of datasets, over any stretch.
  Blend blend;
  blend.counts_.resize(weights.size());
  for (int64_t i = 0; i < kBlendPeriod; ++i) {
    size_t choice = 0;
    double furthest = -1e300;
    for (size_t d = 0; d < weights.size(); ++d) {
      const double behind = weights[d] / sum * static_cast<double>(i + 1) - static_cast<double>(blend.counts_[d]);
      if (behind <= furthest) continue;
      furthest = behind;
      choice = d;
    }
    blend.period_.push_back({static_cast<int64_t>(choice), blend.counts_[choice]++});
  }
  return blend;
}

Blend::Choice Blend::operator()(int64_t index) const {
  MUSTER_CHECK(index >= 0, index);
  Choice choice = period_[static_cast<size_t>(index % kBlendPeriod)];
  choice.sample += index / kBlendPeriod * counts_[static_cast<size_t>(choice.dataset)];
  return choice;
}

}  // namespace muster
