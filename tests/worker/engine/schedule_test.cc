#include "worker/engine/schedule.h"

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

TEST(Schedule, NeverHasMoreThanInFlightBetweenForwardAndBackward) {
  for (int64_t in_flight = 1; in_flight <= 6; ++in_flight) {
    int64_t now = 0;
    int64_t most = 0;
    int64_t next_backward = 0;
    for (const PassAction& action : OneForwardOneBackward(9, in_flight)) {
      if (action.kind == PassAction::Kind::kForward) {
        ++now;
      } else {
        EXPECT_EQ(action.micro_batch, next_backward++);
        --now;
      }
      most = std::max(most, now);
    }
    EXPECT_EQ(most, in_flight);
    EXPECT_EQ(now, 0);
  }
}

}  // namespace
}  // namespace muster
