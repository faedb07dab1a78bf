#include "common/plan/layout.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

Layout DataTensorPipeline(int64_t data, int64_t tensor, int64_t pipeline) {
  Layout layout;
  layout.data = data;
  layout.tensor = tensor;
  layout.pipeline = pipeline;
  return layout;
}

TEST(LayoutTest, TensorIsInnermostThenDataThenPipeline) {
  const Layout layout = DataTensorPipeline(3, 2, 4);
  EXPECT_EQ(RankOf(layout, {1, 0, 0}), 1);
  EXPECT_EQ(RankOf(layout, {0, 1, 0}), 2);
  EXPECT_EQ(RankOf(layout, {0, 0, 1}), 6);
  EXPECT_EQ(RankOf(layout, {1, 2, 3}), 23);
}

TEST(LayoutTest, CoordinatesAndRanksAreInverse) {
  const Layout layout = DataTensorPipeline(3, 2, 4);
  for (int64_t rank = 0; rank < layout.ranks(); ++rank) EXPECT_EQ(RankOf(layout, CoordinateOf(layout, rank)), rank);
}

TEST(LayoutTest, GlobalBatchIsTheProductOfItsParts) {
  Layout layout = DataTensorPipeline(8, 1, 1);
  layout.micro_batch = 8;
  layout.accumulation_steps = 4;
  EXPECT_EQ(layout.global_batch(), 256);
}

}  // namespace
}  // namespace muster
