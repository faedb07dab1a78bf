// Which dataset sample i of a weighted blend comes from, and which of that dataset's samples it is: a pure function of
// i. Immutable after Make; any thread may call.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace muster {

// The pattern of datasets repeats every this many samples; a weight is honoured to one part in it.
inline constexpr int64_t kBlendPeriod = 4096;

class Blend {
 public:
  struct Choice {
    int64_t dataset = 0;
    int64_t sample = 0;  // of that dataset, from 0
  };

  // INVALID_ARGUMENT for no weights, one that is not positive and finite, or one below 1/4096 of the sum.
  static absl::StatusOr<Blend> Make(absl::Span<const double> weights);

  Choice operator()(int64_t index) const;  // REQUIRES: index >= 0

 private:
  std::vector<int64_t> counts_;  // samples of each dataset in a period
  std::vector<Choice> period_;   // of sample i of the first period
};

}  // namespace muster
