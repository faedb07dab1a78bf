#include "worker/engine/loss_spike.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace muster {
namespace {

constexpr double kDeviationsPerMad = 1.4826;  // 1 / the third quartile of the normal distribution

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

double LossSpikeDetector::Median() const { return MedianOf(accepted_); }

double LossSpikeDetector::Limit() const {
  if (accepted_.size() < kLeast) return std::numeric_limits<double>::infinity();
  const double median = Median();
  std::vector<double> distances;
  for (const double loss : accepted_) distances.push_back(std::abs(loss - median));
  return median + std::max(threshold_ * kDeviationsPerMad * MedianOf(std::move(distances)), kLeastRise * median);
}

void LossSpikeDetector::Accept(double loss) {
  if (accepted_.size() == kWindow) accepted_.erase(accepted_.begin());
  accepted_.push_back(loss);
}

}  // namespace muster
