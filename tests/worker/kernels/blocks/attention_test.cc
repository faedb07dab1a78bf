// The block kernels that a GPU runs for attention, run here by a loop, against the f64 reference.
#include "worker/kernels/blocks/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "tests/worker/kernels/attention_reference.h"
#include "worker/kernels/blocks/attention_choice.h"

namespace muster::kernels {
namespace {

// Does the items of a for_each one by one in an order that a kernel may not count on.
struct SerialBlock {
  template <typename F>
  void for_each(int32_t count, F f) const {
    for (int32_t i = count - 1; i >= 0; --i) f(i);
  }
};

// What a launch does, block by block. Shared memory is not cleared for a block, on a GPU no more than here.
template <typename Kernel>
void RunSerially(const Kernel& kernel) {
  const int64_t floats = kernel.shared_floats();
  for (int64_t b = 0; b < kernel.blocks(); ++b) {
    std::vector<float> shared(static_cast<size_t>(floats), std::numeric_limits<float>::quiet_NaN());
    kernel(SerialBlock(), shared.data(), b);
  }
}

void RunBlocks(const Attention& attention) {
  const auto run = [](const auto& kernel) { RunSerially(kernel); };
  RunForwardBlocks(attention.shape, attention.input, attention.out.tensor(), attention.lse.tensor(), run);
  RunBackwardBlocks(attention.shape, attention.d_out.tensor(), attention.input, attention.out.tensor(),
                    attention.lse.tensor(), attention.d_qkv.tensor(), run);
}

void ExpectAgreement(const Attention& attention) {
  const AttentionReference expected = Expected(attention);
  const double tolerance = AttentionTolerance(attention.type);
  EXPECT_EQ(Difference(attention.out.values(), expected.out, tolerance, tolerance), "");
  EXPECT_EQ(Difference(attention.lse.values(), expected.lse, 1e-5, 1e-5), "");
  EXPECT_EQ(Difference(attention.d_qkv.values(), expected.d_qkv, 2 * tolerance, 2 * tolerance), "");
}

class BlockAttentionTest : public testing::TestWithParam<std::tuple<DType, AttentionShape>> {};

TEST_P(BlockAttentionTest, AgreesWithTheReference) {
  const auto& [type, shape] = GetParam();
  const Attention attention(shape, type, 1, 30);
  RunBlocks(attention);
  ExpectAgreement(attention);
}

std::string NameOfCase(const testing::TestParamInfo<BlockAttentionTest::ParamType>& info) {
  const auto& [type, shape] = info.param;
  return std::string(NameOf(type)) + "_b" + std::to_string(shape.batch) + "_s" + std::to_string(shape.sequence) + "_h" +
         std::to_string(shape.heads) + "_kv" + std::to_string(shape.kv_heads) + "_d" + std::to_string(shape.head_dim);
}

// Tiles of 64, 32 and 16 rows: one, part of one, whole ones, some and a rest; grouped queries.
INSTANTIATE_TEST_SUITE_P(
    Shapes, BlockAttentionTest,
    testing::Combine(testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                     testing::Values(AttentionShape{1, 1, 1, 1, 8}, AttentionShape{2, 33, 2, 2, 16},
                                     AttentionShape{1, 128, 3, 3, 31}, AttentionShape{2, 150, 4, 2, 64},
                                     AttentionShape{1, 70, 4, 1, 128}, AttentionShape{1, 37, 2, 1, 160})),
    NameOfCase);

class BlockDocumentTest : public testing::TestWithParam<DType> {};

TEST_P(BlockDocumentTest, AgreesWithTheReference) {
  const Attention attention(kDocumentShape, GetParam(), 1, 31, UnevenDocuments());
  RunBlocks(attention);
  ExpectAgreement(attention);
}

INSTANTIATE_TEST_SUITE_P(Types, BlockDocumentTest, testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                         [](const testing::TestParamInfo<DType>& info) { return std::string(NameOf(info.param)); });

TEST(BlockAttentionLimitsTest, ANanKeySpoilsTheQueriesThatSeeItAndNoOthers) {
  Attention attention({1, 200, 1, 1, 16}, DType::kF32, 1, 12);
  attention.qkv.set(150, 16, std::nan(""));  // a component of key 150
  RunBlocks(attention);
  for (int64_t row = 0; row < 200; ++row) EXPECT_EQ(std::isnan(attention.out.at(row, 0)), row >= 150) << row;
}

// What a block may have on compute capability 8.0.
TEST(BlockAttentionLimitsTest, HeadsOfUpTo384ElementsFitIntoSharedMemory) {
  for (const int64_t head_dim : {64, 128, 384}) {
    const Attention attention({1, 1, 1, 1, head_dim}, DType::kBF16, 1, 32);
    const auto check = [&](const auto& kernel) { EXPECT_LE(4 * kernel.shared_floats(), 163 * 1024) << head_dim; };
    RunForwardBlocks(attention.shape, attention.input, attention.out.tensor(), attention.lse.tensor(), check);
    RunBackwardBlocks(attention.shape, attention.d_out.tensor(), attention.input, attention.out.tensor(),
                      attention.lse.tensor(), attention.d_qkv.tensor(), check);
  }
}

}  // namespace
}  // namespace muster::kernels
