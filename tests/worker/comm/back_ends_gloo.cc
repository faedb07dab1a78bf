#include "tests/support/gloo_harness.h"
#include "tests/worker/comm/back_ends.h"

namespace muster {

std::vector<BackEnd> BackEnds() { return {{"Local", &RunRanks}, {"Gloo", &RunGlooRanks}}; }

}  // namespace muster
