// Attention against f64 softmax(Q K^T / sqrt(d)) V and its derivative. Registered twice: as it is, and with
// DNNL_MAX_CPU_ISA=AVX2.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <tuple>

#include "tests/worker/kernels/kernel_test_support.h"

namespace muster {
namespace {

using kernels::AttentionShape;

// All tensors of one attention, forward and backward.
struct Attention {
  // A document starts wherever `document_starts` says; without, nothing is masked but the future.
  Attention(const AttentionShape& shape_in, DType type_in, int threads, uint64_t seed,
            const std::vector<double>& document_starts = {})
      : shape(shape_in),
        type(type_in),
        context(threads),
        qkv(OwnedTensor::Random(type, rows(), (shape.heads + 2 * shape.kv_heads) * shape.head_dim, seed)),
        d_out(OwnedTensor::Random(type, rows(), shape.heads * shape.head_dim, seed + 1)),
        out(type, rows(), shape.heads * shape.head_dim),
        lse(DType::kF32, shape.batch * shape.heads, shape.sequence),
        d_qkv(type, rows(), qkv.tensor().cols()),
        workspace(DType::kU8, 1, kernels::AttentionWorkspaceBytes(shape, threads)),
        starts(DType::kI32, 1, rows()),
        input{qkv.tensor()} {
    if (document_starts.empty()) return;
    starts = OwnedTensor::Of(DType::kI32, 1, rows(), document_starts);
    input.document_starts = starts.vector();
  }

  int64_t rows() const { return shape.batch * shape.sequence; }
  void Forward() { kernels::AttentionForward(*context, shape, input, out.tensor(), lse.tensor(), workspace.vector()); }
  void Backward() {
    kernels::AttentionBackward(*context, shape, d_out.tensor(), input, out.tensor(), lse.tensor(), d_qkv.tensor(),
                               workspace.vector());
  }

  AttentionShape shape;
  DType type;
  TestContext context;
  OwnedTensor qkv, d_out, out, lse, d_qkv, workspace, starts;  // starts: zeros where there are no documents
  kernels::AttentionInput input;
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
    const int64_t start = static_cast<int64_t>(attention.starts.at(first_row + query));
    std::vector<double> weights(static_cast<size_t>(query + 1));
    double top = -HUGE_VAL;
    for (int64_t key = start; key <= query; ++key) {
      weights[static_cast<size_t>(key)] = scale * dot(qkv, q, qkv, k + key * qkv_cols);
      top = std::max(top, weights[static_cast<size_t>(key)]);
    }
    double total = 0;
    for (int64_t key = start; key <= query; ++key) {
      double& weight = weights[static_cast<size_t>(key)];
      total += weight = std::exp(weight - top);
    }
    for (double& weight : weights) weight /= total;
    expected.lse[static_cast<size_t>(i)] = top + std::log(total);
    double correction = 0;
    for (int64_t key = start; key <= query; ++key) {
      const double weight = weights[static_cast<size_t>(key)];
      for (int64_t c = 0; c < d; ++c) {
        expected.out[static_cast<size_t>(o + c)] += weight * qkv[static_cast<size_t>(v + key * qkv_cols + c)];
        expected.d_qkv[static_cast<size_t>(v + key * qkv_cols + c)] += weight * d_out[static_cast<size_t>(o + c)];
      }
      correction += weight * dot(d_out, o, qkv, v + key * qkv_cols);
    }
    for (int64_t key = start; key <= query; ++key) {
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

// A document starts at every position for which `starts_here(sequence, position)`, and at 0.
std::vector<double> Documents(const AttentionShape& shape, const std::function<bool(int64_t, int64_t)>& starts_here) {
  std::vector<double> starts;
  int64_t start = 0;
  for (int64_t row = 0; row < shape.batch * shape.sequence; ++row) {
    const int64_t position = row % shape.sequence;
    if (position == 0 || starts_here(row / shape.sequence, position)) start = position;
    starts.push_back(static_cast<double>(start));
  }
  return starts;
}

// Of several tiles, with documents shorter and longer than one, at and across their edges, other in each sequence.
const AttentionShape kDocumentShape{2, 700, 4, 2, 32};
std::vector<double> UnevenDocuments() {
  return Documents(kDocumentShape, [](int64_t sequence, int64_t position) {
    const int64_t moved = position - 5 * sequence;
    return moved == 1 || moved == 90 || moved == 128 || moved == 131 || moved == 500 || moved > 697;
  });
}

class DocumentAttentionTest : public testing::TestWithParam<DType> {};

TEST_P(DocumentAttentionTest, AgreesWithTheReference) {
  Attention attention(kDocumentShape, GetParam(), 1, 20, UnevenDocuments());
  const Reference expected = Expected(attention);
  attention.Forward();
  attention.Backward();
  const double tolerance = 2 * Tolerance(GetParam());
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
  const Reference expected = Expected(attention);
  attention.Forward();
  EXPECT_EQ(Difference(attention.out.values(), expected.out, 2e-2, 2e-2),
            "");  // exp amplifies the rounding of scores of 1e5
}

}  // namespace
}  // namespace muster
