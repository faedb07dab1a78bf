// The communicators that tests of this folder run on, each as a function in the shape of RunRanks.
#pragma once

#include <vector>

#include "tests/support/rank_harness.h"

namespace muster {

struct BackEnd {
  const char* name;
  std::vector<absl::Status> (*run)(int size, const RankBody& body, absl::Duration deadline);
};

// Local always; Gloo where the build has it.
std::vector<BackEnd> BackEnds();

}  // namespace muster
