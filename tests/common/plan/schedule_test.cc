#include "common/plan/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

std::string Text(const std::vector<PassAction>& actions) {
  std::string text;
  for (const PassAction& action : actions) {
    absl::StrAppend(&text, action.kind == PassAction::Kind::kForward ? "F" : "B", action.micro_batch, " ");
  }
  return text;
}

TEST(Schedule, FirstStageOfThreeWarmsUpThenAlternates) {
  EXPECT_EQ(Text(OneForwardOneBackward(5, 3)), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4 ");
}

TEST(Schedule, LastStageBacksEachMicroBatchAtOnce) {
  EXPECT_EQ(Text(OneForwardOneBackward(3, 1)), "F0 B0 F1 B1 F2 B2 ");
}

TEST(Schedule, PassesComeInOrderAndNeverMoreThanInFlightAreHeld) {
  for (int64_t micro_batches = 1; micro_batches <= 9; ++micro_batches) {
    for (int64_t in_flight = 1; in_flight <= micro_batches; ++in_flight) {
      int64_t next_forward = 0;
      int64_t next_backward = 0;
      int64_t most = 0;
      for (const PassAction& action : OneForwardOneBackward(micro_batches, in_flight)) {
        int64_t& next = action.kind == PassAction::Kind::kForward ? next_forward : next_backward;
        EXPECT_EQ(action.micro_batch, next++);
        most = std::max(most, next_forward - next_backward);
      }
      EXPECT_EQ(next_forward, micro_batches);
      EXPECT_EQ(next_backward, micro_batches);
      EXPECT_EQ(most, in_flight) << "of " << micro_batches;
    }
  }
}

}  // namespace
}  // namespace muster
