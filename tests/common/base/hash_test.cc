#include "common/base/hash.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(HashTest, GivesThePublishedValues) {
  // SplitMix64's first number for the seed 0, and FNV-1a's test vectors.
  EXPECT_EQ(MixBits(kSplitMixIncrement), 0xe220a8397b1dcdafu);
  EXPECT_EQ(HashText(""), 0xcbf29ce484222325u);
  EXPECT_EQ(HashText("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(HashText("foobar"), 0x85944171f73967e8u);
}

}  // namespace
}  // namespace muster
