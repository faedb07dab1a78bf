#include "common/base/format_seconds.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(FormatSecondsTest, ShowsTwoUnitsOrThreeDigits) {
  EXPECT_EQ(FormatSeconds(0.374), "0.37 s");
  EXPECT_EQ(FormatSeconds(1.4), "1.40 s");
  EXPECT_EQ(FormatSeconds(64), "1 min 04 s");
  EXPECT_EQ(FormatSeconds(59.99), "1 min 00 s");
  EXPECT_EQ(FormatSeconds(11'100), "3 h 05 min");
  EXPECT_EQ(FormatSeconds(312), "5 min 12 s");
}

}  // namespace
}  // namespace muster
