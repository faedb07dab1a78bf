// Recognises a loss that stands far above those of the steps before it.
//
// A loss is a spike above  m + max(threshold x 1.4826 x MAD, 0.1 x m),  m the median of the newest accepted losses and
// MAD the median of their distances from m, which times 1.4826 estimates the deviation of normal noise whatever a few
// outliers say (Rousseeuw and Croux 1993). How the numbers were found:
//  - 64 losses: few enough that the fall of the loss over them is small against a spike, enough for a steady median.
//  - 16 before the first judgement: MAD of 16 is within 30% of the deviation, which a threshold of 6 forgives.
//  - a tenth of the median at the least: late in training the noise of large batches is some hundredths of a nat, and
//    what is six times that needs no rewind.
//
// Owned by the step policy, for the trainer's thread. Pure: equal losses give equal verdicts on every rank, and after a
// resume with the window restored.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace muster {

class LossSpikeDetector {
 public:
  static constexpr size_t kWindow = 64;
  static constexpr size_t kLeast = 16;
  static constexpr double kLeastRise = 0.1;  // of the median

  // `threshold`: in deviations. `accepted`: losses of the steps before, newest last.
  LossSpikeDetector(double threshold, std::vector<double> accepted)
      : threshold_(threshold), accepted_(std::move(accepted)) {}

  // The largest loss that is no spike; infinity while too few were accepted.
  double Limit() const;
  double Median() const;  // of the window; REQUIRES: it is not empty
  bool IsSpike(double loss) const { return loss > Limit(); }

  void Accept(double loss);
  void Forget() { accepted_.clear(); }
  const std::vector<double>& accepted() const { return accepted_; }

 private:
  double threshold_;
  std::vector<double> accepted_;  // at most kWindow
};

}  // namespace muster
