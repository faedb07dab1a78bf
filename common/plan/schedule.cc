#include "common/plan/schedule.h"

#include "common/base/check.h"

namespace muster {

std::vector<PassAction> OneForwardOneBackward(int64_t micro_batches, int64_t in_flight) {
  MUSTER_CHECK(1 <= in_flight && in_flight <= micro_batches, in_flight, " in flight of ", micro_batches);
  std::vector<PassAction> actions;
  int64_t forwards = 0;
  for (; forwards < in_flight - 1; ++forwards) actions.push_back({PassAction::Kind::kForward, forwards});
  for (int64_t backwards = 0; backwards < micro_batches; ++backwards) {
    if (forwards < micro_batches) actions.push_back({PassAction::Kind::kForward, forwards++});
    actions.push_back({PassAction::Kind::kBackward, backwards});
  }
  return actions;
}

}  // namespace muster
