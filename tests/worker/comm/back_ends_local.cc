#include "tests/worker/comm/back_ends.h"

namespace muster {

std::vector<BackEnd> BackEnds() { return {{"Local", &RunRanks}}; }

}  // namespace muster
