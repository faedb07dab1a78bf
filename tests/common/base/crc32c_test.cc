#include "common/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32c, GivesThePublishedChecksums) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string rising;
  for (char byte = 0; byte < 32; ++byte) rising.push_back(byte);
  EXPECT_EQ(Crc32c(rising), 0x46DD794Eu);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
}

}  // namespace
}  // namespace muster
