// RunRanks (rank_harness.h) over Gloo: the ranks are still threads of the test, but their bytes go through TCP on
// loopback.
#pragma once

#include <vector>

#include "tests/support/rank_harness.h"

namespace muster {

std::vector<absl::Status> RunGlooRanks(int size, const RankBody& body, absl::Duration deadline = absl::Seconds(60));

}  // namespace muster
