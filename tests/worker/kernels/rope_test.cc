// Rotary position embedding against its definition in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "tests/worker/kernels/kernel_test_support.h"

namespace muster {
namespace {

using kernels::AttentionShape;

constexpr double kBase = 10000;

double Angle(int64_t position, int64_t pair, int64_t head_dim) {
  return static_cast<double>(position) / std::pow(kBase, static_cast<double>(2 * pair) / static_cast<double>(head_dim));
}

OwnedTensor Table(KernelContext& context, int64_t sequence, int64_t head_dim) {
  OwnedTensor table(DType::kF32, sequence, head_dim);
  kernels::FillRopeTable(context, kBase, table.tensor());
  return table;
}

class RopeTest : public testing::TestWithParam<std::tuple<DType, AttentionShape>> {
 protected:
  RopeTest()
      : type_(std::get<0>(GetParam())),
        shape_(std::get<1>(GetParam())),
        turned_((shape_.heads + shape_.kv_heads) * shape_.head_dim),
        cols_(turned_ + shape_.kv_heads * shape_.head_dim),
        table_(Table(*context_, shape_.sequence + 3, shape_.head_dim)),
        qkv_(OwnedTensor::Random(type_, shape_.batch * shape_.sequence, cols_, 1, 1, cols_ + 5)) {}

  const DType type_;
  const AttentionShape shape_;
  const int64_t turned_, cols_;
  TestContext context_;
  OwnedTensor table_, qkv_;
};

TEST_P(RopeTest, TurnsQueriesAndKeysByTheirPositionAndLeavesValues) {
  const int64_t half = shape_.head_dim / 2;
  std::vector<double> expected = qkv_.values();
  for (int64_t i = 0; i < shape_.batch * shape_.sequence * turned_ / 2; ++i) {
    const int64_t row = i / (turned_ / 2);
    const int64_t head = i % (turned_ / 2) / half;
    const int64_t lower = head * shape_.head_dim + i % half;
    const double angle = Angle(row % shape_.sequence, i % half, shape_.head_dim);
    const double a = qkv_.at(row, lower), b = qkv_.at(row, lower + half);
    expected[static_cast<size_t>(row * cols_ + lower)] = a * std::cos(angle) - b * std::sin(angle);
    expected[static_cast<size_t>(row * cols_ + lower + half)] = b * std::cos(angle) + a * std::sin(angle);
  }
  kernels::Rope(*context_, table_.tensor(), shape_, qkv_.tensor(), false);
  EXPECT_EQ(Difference(qkv_.values(), expected, 1e-6, 1.01 * RoundingError(type_)), "");
  EXPECT_TRUE(qkv_.gaps_untouched());
}

TEST_P(RopeTest, TheInverseTurnsBack) {
  const std::vector<double> before = qkv_.values();
  kernels::Rope(*context_, table_.tensor(), shape_, qkv_.tensor(), false);
  kernels::Rope(*context_, table_.tensor(), shape_, qkv_.tensor(), true);
  EXPECT_EQ(Difference(qkv_.values(), before, 6 * RoundingError(type_), 3 * RoundingError(type_)), "");
}

TEST_P(RopeTest, TwoThreadsGiveTheSameBits) {
  AttentionShape large = shape_;
  large.batch = 40000 / (shape_.sequence * cols_) + 1;
  const auto qkv = OwnedTensor::Random(type_, large.batch * large.sequence, cols_, 2);
  const OwnedTensor other = qkv.Copy();
  TestContext two(2);
  kernels::Rope(*context_, table_.tensor(), large, qkv.tensor(), false);
  kernels::Rope(*two, table_.tensor(), large, other.tensor(), false);
  EXPECT_EQ(qkv.memory(), other.memory());
}

TEST_P(RopeTest, NanStaysInItsPair) {
  qkv_.set(0, 0, std::nan(""));
  kernels::Rope(*context_, table_.tensor(), shape_, qkv_.tensor(), false);
  for (int64_t i = 0; i < shape_.batch * shape_.sequence * cols_; ++i) {
    EXPECT_EQ(std::isnan(qkv_.at(i)), i == 0 || i == shape_.head_dim / 2) << i;
  }
}

std::string NameOfCase(const testing::TestParamInfo<RopeTest::ParamType>& info) {
  const auto& [type, shape] = info.param;
  return std::string(NameOf(type)) + "_b" + std::to_string(shape.batch) + "_s" + std::to_string(shape.sequence) + "_h" +
         std::to_string(shape.heads) + "_kv" + std::to_string(shape.kv_heads) + "_d" + std::to_string(shape.head_dim);
}

INSTANTIATE_TEST_SUITE_P(Shapes, RopeTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                                          testing::Values(AttentionShape{1, 1, 1, 1, 2}, AttentionShape{2, 9, 2, 2, 16},
                                                          AttentionShape{3, 17, 4, 2, 66},
                                                          AttentionShape{1, 130, 4, 1, 128})),
                         NameOfCase);

// More positions than are computed at once.
TEST(RopeTableTest, HoldsCosinesAndSinesOfEveryPosition) {
  const int64_t sequence = 700, head_dim = 64;
  TestContext context;
  const OwnedTensor table = Table(*context, sequence, head_dim);
  EXPECT_EQ(table.tensor().bytes(), RopeTableBytes(sequence, head_dim));
  for (int64_t i = 0; i < sequence * head_dim; ++i) {
    const int64_t c = i % head_dim;
    const double angle = Angle(i / head_dim, c % (head_dim / 2), head_dim);
    ASSERT_NEAR(table.at(i), c < head_dim / 2 ? std::cos(angle) : std::sin(angle), 1e-7) << i;
  }
}

}  // namespace
}  // namespace muster
