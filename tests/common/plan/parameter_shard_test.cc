#include "common/plan/parameter_shard.h"

#include <map>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/plan/planner_oracle.h"

namespace muster {
namespace {

ModelShape SmallLlama(int64_t kv_heads) {
  ModelShape shape;
  shape.family = ModelFamily::kLlama;
  shape.layers = 1;
  shape.hidden = 32;
  shape.heads = 8;
  shape.kv_heads = kv_heads;
  shape.ffn = 48;
  shape.vocab = 101;
  shape.context = 16;
  shape.tied = false;
  return shape;
}

ParameterInfo Named(const ModelShape& shape, const std::string& name) {
  for (const ParameterInfo& parameter : Parameters(shape)) {
    if (parameter.name == name) return parameter;
  }
  ADD_FAILURE() << "no parameter " << name;
  return {};
}

TEST(ParameterShardTest, OneRankHoldsTheWholeModel) {
  for (const nlohmann::json& row : PlannerOracle("parameter_counts").at("rows")) {
    const ModelShape shape = ShapeOfRow(row);
    EXPECT_EQ(ParametersOnTensorRank(shape, 1), ParameterCount(shape)) << row.at("name");
  }
}

// The first sharers' pieces are a partition: every element of every parameter once.
TEST(ParameterShardTest, PiecesOfAllRanksCoverEveryElementOnce) {
  for (const int64_t kv_heads : {1, 2, 8}) {
    const ModelShape shape = SmallLlama(kv_heads);
    for (const int64_t tensor : {1, 2, 4, 8}) {
      for (const ParameterInfo& parameter : Parameters(shape)) {
        std::map<std::pair<int64_t, int64_t>, int> times;
        for (int64_t rank = 0; rank < tensor; ++rank) {
          for (const ShardPiece& piece : ShardOnTensorRank(shape, parameter, tensor, rank).pieces) {
            if (piece.first_sharer != rank) continue;
            const int64_t columns = piece.dims.size() == 2 ? piece.dims[1] : 1;
            const int64_t first_column = piece.dims.size() == 2 ? piece.offset[1] : 0;
            for (int64_t row = 0; row < piece.dims[0]; ++row) {
              for (int64_t column = 0; column < columns; ++column) {
                ++times[{piece.offset[0] + row, first_column + column}];
              }
            }
          }
        }
        EXPECT_EQ(static_cast<int64_t>(times.size()), parameter.elements()) << parameter.name << " over " << tensor;
        for (const auto& [element, count] : times) ASSERT_EQ(count, 1) << parameter.name << " over " << tensor;
      }
    }
  }
}

TEST(ParameterShardTest, QueryKeyAndValueHeadsOfARankLieTogether) {
  const ModelShape shape = SmallLlama(/*kv_heads=*/4);
  const ParameterShard shard =
      ShardOnTensorRank(shape, Named(shape, "layer.0.attention.qkv.weight"), /*tensor=*/2, /*rank=*/1);
  EXPECT_THAT(shard.local_dims, testing::ElementsAre(16 + 8 + 8, 32));
  ASSERT_EQ(shard.pieces.size(), 3u);
  EXPECT_THAT(shard.pieces[0].offset, testing::ElementsAre(16, 0));           // heads 4 to 7 of 4 columns
  EXPECT_THAT(shard.pieces[1].offset, testing::ElementsAre(32 + 8, 0));       // key heads 2 and 3
  EXPECT_THAT(shard.pieces[2].offset, testing::ElementsAre(32 + 16 + 8, 0));  // value heads 2 and 3
  EXPECT_EQ(shard.pieces[2].local_first, (16 + 8) * 32);
}

TEST(ParameterShardTest, NeighboursShareKeyHeadsThatAreFewerThanRanks) {
  const ModelShape shape = SmallLlama(/*kv_heads=*/2);
  const ParameterInfo qkv = Named(shape, "layer.0.attention.qkv.weight");
  for (int64_t rank = 0; rank < 8; ++rank) {
    const ShardPiece keys = ShardOnTensorRank(shape, qkv, /*tensor=*/8, rank).pieces[1];
    EXPECT_THAT(keys.offset, testing::ElementsAre(32 + rank / 4 * 4, 0));
    EXPECT_EQ(keys.first_sharer, rank / 4 * 4);
    EXPECT_EQ(keys.sharers, 4);
    EXPECT_TRUE(keys.partial_gradients);
  }
}

TEST(ParameterShardTest, TheVocabularyIsPaddedToTheTensorSize) {
  const ModelShape shape = SmallLlama(/*kv_heads=*/8);
  const ParameterShard last = ShardOnTensorRank(shape, Named(shape, "head.weight"), /*tensor=*/4, /*rank=*/3);
  EXPECT_THAT(last.local_dims, testing::ElementsAre(26, 32));
  EXPECT_THAT(last.pieces[0].offset, testing::ElementsAre(78, 0));
  EXPECT_THAT(last.pieces[0].dims, testing::ElementsAre(23, 32));
}

TEST(ParameterShardTest, NormsAndRowParallelBiasesAreSharedWithPartsOfTheGradient) {
  const ModelShape shape = ShapeOfRow(RowNamed(PlannerOracle("parameter_counts"), "gpt2-xl"));
  for (const char* name : {"layer.0.attention.norm.bias", "layer.0.attention.projection.bias", "layer.0.ffn.down.bias",
                           "head.norm.weight"}) {
    const ShardPiece piece = ShardOnTensorRank(shape, Named(shape, name), /*tensor=*/5, /*rank=*/2).pieces[0];
    EXPECT_EQ(piece.sharers, 5) << name;
    EXPECT_EQ(piece.elements(), 1600) << name;
    EXPECT_TRUE(piece.partial_gradients) << name;
  }
  const ParameterInfo position = Named(shape, "embedding.position.weight");
  EXPECT_FALSE(ShardOnTensorRank(shape, position, /*tensor=*/5, /*rank=*/2).pieces[0].partial_gradients);
}

TEST(ParameterShardTest, ReplicasShareTheRowsOfAPiece) {
  for (const int64_t rows : {0, 1, 3, 16, 101}) {
    int64_t next = 0;
    for (int64_t d = 0; d < 8; ++d) {
      const RowBlock block = ReplicaRows(rows, /*data=*/8, d);
      EXPECT_EQ(block.first, next);
      next = block.last;
    }
    EXPECT_EQ(next, rows);
  }
}

}  // namespace
}  // namespace muster
