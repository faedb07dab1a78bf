#include "client/terminal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace muster {
namespace {

TEST(TerminalTest, ABarFillsByEighthsOfACell) {
  EXPECT_EQ(Bar(0, 4), "····");
  EXPECT_EQ(Bar(0.5, 4), "██··");
  EXPECT_EQ(Bar(0.53125, 4), "██▏·");
  EXPECT_EQ(Bar(1, 4), "████");
  EXPECT_EQ(Bar(7, 4), "████");
  EXPECT_EQ(Bar(-1, 4), "····");
  EXPECT_EQ(Bar(std::nan(""), 4), "····");
}

TEST(TerminalTest, ASparklineSpansTheValuesAndSkipsWhatIsNotFinite) {
  EXPECT_EQ(Sparkline({3, 2, 1}, 10), "█▅▁");
  EXPECT_EQ(Sparkline({1, 1, 1}, 10), "▁▁▁");
  EXPECT_EQ(Sparkline({2, std::nan(""), std::numeric_limits<double>::infinity(), 1}, 10), "█▁");
  EXPECT_EQ(Sparkline({}, 10), "");
  EXPECT_EQ(Sparkline({4, 3, 2, 1}, 2), "█▁");
}

TEST(TerminalTest, APaletteThatIsOffAddsNothing) {
  EXPECT_EQ(Palette(false).Paint(Colour::kRed, "FAILED"), "FAILED");
  EXPECT_EQ(Palette(true).Paint(Colour::kRed, "FAILED"), "\033[31mFAILED\033[0m");
}

}  // namespace
}  // namespace muster
