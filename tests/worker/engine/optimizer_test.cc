#include "worker/engine/optimizer.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(ClipFactor, ShrinksALongGradientToTheLimit) {
  EXPECT_NEAR(ClipFactor(4, 1), 0.25, 1e-6);
  EXPECT_LT(ClipFactor(4, 1), 0.25) << "the norm is enlarged by 1e-6, as PyTorch does";
}

TEST(ClipFactor, LeavesAShortGradientAlone) {
  EXPECT_EQ(ClipFactor(0.5, 1), 1);
  EXPECT_EQ(ClipFactor(0, 1), 1);
}

TEST(ClipFactor, LeavesEveryGradientAloneWithoutALimit) { EXPECT_EQ(ClipFactor(1e6, 0), 1); }

}  // namespace
}  // namespace muster
