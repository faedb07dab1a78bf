#include "common/base/format_bytes.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(FormatBytesTest, ThreeDigitsInTheUnitThatFits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(812), "812 B");
  EXPECT_EQ(FormatBytes(1024), "1.0 KiB");
  EXPECT_EQ(FormatBytes(int64_t{512} << 20), "512 MiB");
  EXPECT_EQ(FormatBytes(int64_t{40} << 30), "40.0 GiB");
  EXPECT_EQ(FormatBytes(64'172'851), "61.2 MiB");
}

TEST(FormatBytesTest, NeverShowsAThousandOfAUnit) {
  EXPECT_EQ(FormatBytes((int64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(FormatBytes((int64_t{1} << 30) - 1), "1.0 GiB");
}

}  // namespace
}  // namespace muster
