// Attention against f64 softmax(Q K^T / sqrt(d)) V and its derivative. Registered twice: as it is, and with
// DNNL_MAX_CPU_ISA=AVX2.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "tests/worker/kernels/kernel_test_support.h"

namespace muster {
namespace {

using kernels::AttentionShape;

// All tensors of one attention, forward and backward.
struct Attention {
  Attention(const AttentionShape& shape_in, DType type_in, int threads, uint64_t seed)
      : shape(shape_in),
        type(type_in),
        context(threads),
        qkv(OwnedTensor::Random(type, rows(), (shape.heads + 2 * shape.kv_heads) * shape.head_dim, seed)),
        d_out(OwnedTensor::Random(type, rows(), shape.heads * shape.head_dim, seed + 1)),
        out(type, rows(), shape.heads * shape.head_dim),
        lse(DType::kF32, shape.batch * shape.heads, shape.sequence),
        d_qkv(type, rows(), qkv.tensor().cols()),
        workspace(DType::kU8, 1, kernels::AttentionWorkspaceBytes(shape, threads)) {}

  int64_t rows() const { return shape.batch * shape.sequence; }
  void Forward() {
    kernels::AttentionForward(*context, shape, {qkv.tensor()}, out.tensor(), lse.tensor(), workspace.vector());
  }
  void Backward() {
    kernels::AttentionBackward(*context, shape, d_out.tensor(), {qkv.tensor()}, out.tensor(), lse.tensor(),
                               d_qkv.tensor(), workspace.vector());
  }

  AttentionShape shape;
  DType type;
  TestContext context;
  OwnedTensor qkv, d_out, out, lse, d_qkv, workspace;
};

struct Reference {
  std::vector<double> out, lse, d_qkv;
};

// Straight from the definition, a query at a time.
Reference Expected(const Attention& attention) {
  const AttentionShape& shape = attention.shape;
  const int64_t d = shape.head_dim;
  const int64_t group = shape.heads / shape.kv_heads;
  const int64_t qkv_cols = attention.qkv.tensor().cols();
  const std::vector<double> qkv = attention.qkv.values();
  const std::vector<double> d_out = attention.d_out.values();
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  Reference expected;
  expected.out.resize(d_out.size());
  expected.lse.resize(static_cast<size_t>(shape.batch * shape.heads * shape.sequence));
  expected.d_qkv.resize(qkv.size());
  for (int64_t i = 0; i < shape.batch * shape.heads * shape.sequence; ++i) {
    const int64_t query = i % shape.sequence;
    const int64_t head = i / shape.sequence % shape.heads;
    const int64_t first_row = i / shape.sequence / shape.heads * shape.sequence;
    const int64_t q = (first_row + query) * qkv_cols + head * d;
    const int64_t k = first_row * qkv_cols + (shape.heads + head / group) * d;
    const int64_t v = k + shape.kv_heads * d;
    const int64_t o = (first_row + query) * shape.heads * d + head * d;
    const auto dot = [&](const std::vector<double>& a, int64_t at_a, const std::vector<double>& b, int64_t at_b) {
      double sum = 0;
      for (int64_t c = 0; c < d; ++c) sum += a[static_cast<size_t>(at_a + c)] * b[static_cast<size_t>(at_b + c)];
      return sum;
    };
    std::vector<double> weights(static_cast<size_t>(query + 1));
    double top = -HUGE_VAL;
    for (int64_t key = 0; key <= query; ++key) {
      weights[static_cast<size_t>(key)] = scale * dot(qkv, q, qkv, k + key * qkv_cols);
      top = std::max(top, weights[static_cast<size_t>(key)]);
    }
    double total = 0;
    for (double& weight : weights) total += weight = std::exp(weight - top);
    for (double& weight : weights) weight /= total;
    expected.lse[static_cast<size_t>(i)] = top + std::log(total);
    double correction = 0;
    for (int64_t key = 0; key <= query; ++key) {
      const double weight = weights[static_cast<size_t>(key)];
      for (int64_t c = 0; c < d; ++c) {
        expected.out[static_cast<size_t>(o + c)] += weight * qkv[static_cast<size_t>(v + key * qkv_cols + c)];
        expected.d_qkv[static_cast<size_t>(v + key * qkv_cols + c)] += weight * d_out[static_cast<size_t>(o + c)];
      }
      correction += weight * dot(d_out, o, qkv, v + key * qkv_cols);
    }
    for (int64_t key = 0; key <= query; ++key) {
      const double d_score =
          weights[static_cast<size_t>(key)] * (dot(d_out, o, qkv, v + key * qkv_cols) - correction) * scale;
      for (int64_t c = 0; c < d; ++c) {
        expected.d_qkv[static_cast<size_t>(q + c)] += d_score * qkv[static_cast<size_t>(k + key * qkv_cols + c)];
        expected.d_qkv[static_cast<size_t>(k + key * qkv_cols + c)] += d_score * qkv[static_cast<size_t>(q + c)];
      }
    }
  }
  return expected;
}

class AttentionTest : public testing::TestWithParam<std::tuple<DType, AttentionShape>> {};

// Probabilities and score gradients are rounded to the compute type once each, and the sums over keys average that out.
double Tolerance(DType type) { return type == DType::kF32 ? 1e-5 : 4 * RoundingError(type); }

TEST_P(AttentionTest, AgreesWithTheReferenceForward) {
  const auto& [type, shape] = GetParam();
  Attention attention(shape, type, 1, 7);
  const Reference expected = Expected(attention);
  attention.Forward();
  EXPECT_EQ(Difference(attention.out.values(), expected.out, Tolerance(type), Tolerance(type)), "");
  EXPECT_EQ(Difference(attention.lse.values(), expected.lse, 1e-5, 1e-5), "");
}

TEST_P(AttentionTest, AgreesWithTheReferenceBackward) {
  const auto& [type, shape] = GetParam();
  Attention attention(shape, type, 1, 8);
  const Reference expected = Expected(attention);
  attention.Forward();
  attention.Backward();
  EXPECT_EQ(Difference(attention.d_qkv.values(), expected.d_qkv, 2 * Tolerance(type), 2 * Tolerance(type)), "");
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
  const Reference expected = Expected(attention);
  attention.Forward();
  EXPECT_EQ(Difference(attention.out.values(), expected.out, 2e-2, 2e-2),
            "");  // exp amplifies the rounding of scores of 1e5
}

}  // namespace
}  // namespace muster
