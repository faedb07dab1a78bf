// Attention against f64 softmax(Q K^T / sqrt(d)) V and its derivative. Registered twice: as it is, and with
// DNNL_MAX_CPU_ISA=AVX2.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "tests/worker/kernels/attention_reference.h"

namespace muster {
namespace {

using kernels::AttentionShape;

class AttentionTest : public testing::TestWithParam<std::tuple<DType, AttentionShape>> {};

TEST_P(AttentionTest, AgreesWithTheReferenceForward) {
  const auto& [type, shape] = GetParam();
  Attention attention(shape, type, 1, 7);
  const AttentionReference expected = Expected(attention);
  attention.Forward();
  EXPECT_EQ(Difference(attention.out.values(), expected.out, AttentionTolerance(type), AttentionTolerance(type)), "");
  EXPECT_EQ(Difference(attention.lse.values(), expected.lse, 1e-5, 1e-5), "");
}

TEST_P(AttentionTest, AgreesWithTheReferenceBackward) {
  const auto& [type, shape] = GetParam();
  Attention attention(shape, type, 1, 8);
  const AttentionReference expected = Expected(attention);
  attention.Forward();
  attention.Backward();
  EXPECT_EQ(
      Difference(attention.d_qkv.values(), expected.d_qkv, 2 * AttentionTolerance(type), 2 * AttentionTolerance(type)),
      "");
}

TEST_P(AttentionTest, GivesTheSameBitsOnTwoThreads) {
  const auto& [type, shape] = GetParam();
  Attention one(shape, type, 1, 9), two(shape, type, 2, 9);
  for (Attention* attention : {&one, &two}) {
    attention->Forward();
    attention->Backward();
  }
  EXPECT_EQ(one.out.memory(), two.out.memory());
  EXPECT_EQ(one.d_qkv.memory(), two.d_qkv.memory());
}

TEST_P(AttentionTest, GivesASequenceTheSameBitsInAnyBatch) {
  const auto& [type, shape] = GetParam();
  AttentionShape twice = shape;
  twice.batch = 2 * shape.batch;
  Attention large(twice, type, 1, 10);
  large.Forward();
  large.Backward();
  Attention small(shape, type, 1, 11);
  const int64_t rows = small.rows();
  for (int64_t row = 0; row < rows; ++row) {  // the second half of the large batch
    for (int64_t c = 0; c < small.qkv.tensor().cols(); ++c) small.qkv.set(row, c, large.qkv.at(rows + row, c));
    for (int64_t c = 0; c < small.d_out.tensor().cols(); ++c) small.d_out.set(row, c, large.d_out.at(rows + row, c));
  }
  small.Forward();
  small.Backward();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t c = 0; c < small.out.tensor().cols(); ++c)
      ASSERT_EQ(small.out.at(row, c), large.out.at(rows + row, c));
    for (int64_t c = 0; c < small.qkv.tensor().cols(); ++c) {
      ASSERT_EQ(small.d_qkv.at(row, c), large.d_qkv.at(rows + row, c));
    }
  }
}

std::string NameOfCase(const testing::TestParamInfo<AttentionTest::ParamType>& info) {
  const auto& [type, shape] = info.param;
  return std::string(NameOf(type)) + "_b" + std::to_string(shape.batch) + "_s" + std::to_string(shape.sequence) + "_h" +
         std::to_string(shape.heads) + "_kv" + std::to_string(shape.kv_heads) + "_d" + std::to_string(shape.head_dim);
}

// One tile, part of a tile, whole tiles, tiles and a rest; grouped queries.
INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionTest,
    testing::Combine(testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                     testing::Values(AttentionShape{1, 1, 1, 1, 8}, AttentionShape{2, 33, 2, 2, 16},
                                     AttentionShape{1, 128, 3, 3, 31}, AttentionShape{2, 256, 4, 2, 32},
                                     AttentionShape{1, 300, 4, 1, 64})),
    NameOfCase);

class DocumentAttentionTest : public testing::TestWithParam<DType> {};

TEST_P(DocumentAttentionTest, AgreesWithTheReference) {
  Attention attention(kDocumentShape, GetParam(), 1, 20, UnevenDocuments());
  const AttentionReference expected = Expected(attention);
  attention.Forward();
  attention.Backward();
  const double tolerance = 2 * AttentionTolerance(GetParam());
  EXPECT_EQ(Difference(attention.out.values(), expected.out, tolerance, tolerance), "");
  EXPECT_EQ(Difference(attention.lse.values(), expected.lse, 1e-5, 1e-5), "");
  EXPECT_EQ(Difference(attention.d_qkv.values(), expected.d_qkv, 2 * tolerance, 2 * tolerance), "");
}

TEST_P(DocumentAttentionTest, GivesTheSameBitsOnTwoThreads) {
  Attention one(kDocumentShape, GetParam(), 1, 21, UnevenDocuments());
  Attention two(kDocumentShape, GetParam(), 2, 21, UnevenDocuments());
  for (Attention* attention : {&one, &two}) {
    attention->Forward();
    attention->Backward();
  }
  EXPECT_EQ(one.out.memory(), two.out.memory());
  EXPECT_EQ(one.d_qkv.memory(), two.d_qkv.memory());
}

TEST_P(DocumentAttentionTest, OneDocumentGivesTheBitsOfNoMask) {
  const AttentionShape shape{2, 300, 4, 2, 32};
  Attention plain(shape, GetParam(), 1, 22);
  Attention masked(shape, GetParam(), 1, 22, Documents(shape, [](int64_t, int64_t) { return false; }));
  for (Attention* attention : {&plain, &masked}) {
    attention->Forward();
    attention->Backward();
  }
  EXPECT_EQ(plain.out.memory(), masked.out.memory());
  EXPECT_EQ(plain.lse.memory(), masked.lse.memory());
  EXPECT_EQ(plain.d_qkv.memory(), masked.d_qkv.memory());
}

// Tiles that are hidden whole would spread their NaN: zero times NaN is NaN.
TEST_P(DocumentAttentionTest, ADocumentDoesNotReadTilesOfAnother) {
  const AttentionShape shape{1, 512, 2, 1, 16};
  Attention attention(shape, GetParam(), 1, 23,
                      Documents(shape, [](int64_t, int64_t position) { return position == 256; }));
  for (int64_t c = 0; c < attention.qkv.tensor().cols(); ++c) attention.qkv.set(100, c, std::nan(""));
  attention.Forward();
  attention.Backward();
  EXPECT_TRUE(std::isnan(attention.out.at(255, 0)));
  for (int64_t row = 256; row < shape.sequence; ++row) {
    ASSERT_TRUE(std::isfinite(attention.out.at(row, 0))) << row;
    for (int64_t c = 0; c < attention.d_qkv.tensor().cols(); ++c) {
      ASSERT_TRUE(std::isfinite(attention.d_qkv.at(row, c))) << row;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DocumentAttentionTest, testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                         [](const testing::TestParamInfo<DType>& info) { return std::string(NameOf(info.param)); });

TEST(DocumentAttentionDeathTest, RefusesADocumentThatStartsAfterItsRow) {
  Attention attention({1, 3, 1, 1, 8}, DType::kF32, 1, 24, {0, 0, 3});
  EXPECT_DEATH(attention.Forward(), "row 2, position 2, starts at 3");
}

TEST(AttentionPropagationTest, ANanKeySpoilsTheQueriesThatSeeItAndNoOthers) {
  Attention attention({1, 200, 1, 1, 16}, DType::kF32, 1, 12);
  attention.qkv.set(150, 16, std::nan(""));  // a component of key 150
  attention.Forward();
  for (int64_t row = 0; row < 200; ++row) EXPECT_EQ(std::isnan(attention.out.at(row, 0)), row >= 150) << row;
}

TEST(AttentionPropagationTest, LargeScoresDoNotOverflow) {
  Attention attention({1, 130, 1, 1, 16}, DType::kF32, 1, 13);
  for (int64_t row = 0; row < 130; ++row) {
    for (int64_t c = 0; c < 32; ++c) attention.qkv.set(row, c, 100 * attention.qkv.at(row, c));
  }
  const AttentionReference expected = Expected(attention);
  attention.Forward();
  EXPECT_EQ(Difference(attention.out.values(), expected.out, 2e-2, 2e-2),
            "");  // exp amplifies the rounding of scores of 1e5
}

}  // namespace
}  // namespace muster
