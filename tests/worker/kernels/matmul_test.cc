// Matmul against the f64 product. Registered twice: as it is, and with DNNL_MAX_CPU_ISA=AVX2, where oneDNN has no bf16
// and operands are widened.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>
#include <tuple>

#include "tests/worker/kernels/kernel_test_support.h"

namespace muster {
namespace {

struct Case {
  int64_t m, n, k;
};

// (what is multiplied, the type of the result, its shape)
class MatMulTest : public testing::TestWithParam<std::tuple<DType, DType, Case>> {};

// A product with all that may vary about it, beside its reference.
struct Product {
  Product(DType type_in, DType out_type, Case size_in, bool transpose_a_in, bool transpose_b_in, int64_t gap)
      : size(size_in),
        transpose_a(transpose_a_in),
        transpose_b(transpose_b_in),
        a(OwnedTensor::Random(type_in, transpose_a ? size.k : size.m, transpose_a ? size.m : size.k, 1, 1,
                              (transpose_a ? size.m : size.k) + gap)),
        b(OwnedTensor::Random(type_in, transpose_b ? size.n : size.k, transpose_b ? size.k : size.n, 2, 1,
                              (transpose_b ? size.k : size.n) + gap)),
        bias(OwnedTensor::Random(type_in, 1, size.n, 3)),
        out(OwnedTensor::Random(out_type, size.m, size.n, 4, 1, size.n + gap)) {}

  void Run(KernelContext& context, bool accumulate, bool with_bias) {
    MatMulArgs args{a.tensor(), b.tensor(), out.tensor(), transpose_a, transpose_b, accumulate, nullptr};
    const Tensor bias_vector = bias.vector();
    if (with_bias) args.bias = &bias_vector;
    kernels::MatMul(context, args);
  }

  using MatMulArgs = kernels::MatMulArgs;

  std::vector<double> Expected(bool accumulate, bool with_bias) const {
    std::vector<double> product = ReferenceProduct(
        size.m, size.n, size.k, [&](int64_t i, int64_t j) { return transpose_a ? a.at(j, i) : a.at(i, j); },
        [&](int64_t i, int64_t j) { return transpose_b ? b.at(j, i) : b.at(i, j); });
    for (int64_t i = 0; i < size.m * size.n; ++i) {
      if (accumulate) product[static_cast<size_t>(i)] += out.at(i);
      if (with_bias) product[static_cast<size_t>(i)] += bias.at(i % size.n);
    }
    return product;
  }

  // Partial sums grow as the root of k and each addition rounds: in all a few units of f32 times k, then one rounding
  // of the result.
  std::string Difference(const std::vector<double>& expected) const {
    const double absolute = 3e-7 * static_cast<double>(size.k) + 2e-6;
    return muster::Difference(out.values(), expected, absolute, 1.01 * RoundingError(out.tensor().dtype));
  }

  Case size;
  bool transpose_a, transpose_b;
  OwnedTensor a, b, bias, out;
};

TEST_P(MatMulTest, AgreesWithTheReferenceForEveryTransposeAndStride) {
  const auto& [type, out_type, size] = GetParam();
  TestContext context;
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const int64_t gap : {0, 5}) {
        Product product(type, out_type, size, transpose_a, transpose_b, gap);
        const std::vector<double> expected = product.Expected(false, false);
        product.Run(*context, false, false);
        EXPECT_EQ(product.Difference(expected), "") << transpose_a << transpose_b << " gap " << gap;
        EXPECT_TRUE(product.out.gaps_untouched());
      }
    }
  }
}

TEST_P(MatMulTest, AddsTheBiasToEveryRow) {
  const auto& [type, out_type, size] = GetParam();
  TestContext context;
  Product product(type, out_type, size, false, true, 0);
  const std::vector<double> expected = product.Expected(false, true);
  product.Run(*context, false, true);
  EXPECT_EQ(product.Difference(expected), "");
}

TEST_P(MatMulTest, AccumulatesOntoWhatIsThere) {
  const auto& [type, out_type, size] = GetParam();
  TestContext context;
  Product product(type, out_type, size, true, false, 3);
  const std::vector<double> expected = product.Expected(true, false);
  product.Run(*context, true, false);
  EXPECT_EQ(product.Difference(expected), "");
  EXPECT_TRUE(product.out.gaps_untouched());
}

TEST_P(MatMulTest, RepeatsItsBits) {
  const auto& [type, out_type, size] = GetParam();
  Product first(type, out_type, size, false, true, 0);
  Product second(type, out_type, size, false, true, 0);
  TestContext one, other;
  first.Run(*one, false, true);
  Product between(type, out_type, {size.m, size.n, size.k + 1}, true, false, 0);
  between.Run(*other, false, false);
  second.Run(*other, false, true);
  EXPECT_EQ(first.out.memory(), second.out.memory());
}

TEST_P(MatMulTest, AgreesWithTheReferenceOnTwoThreads) {
  const auto& [type, out_type, size] = GetParam();
  TestContext context(2);
  Product product(type, out_type, size, false, true, 0);
  const std::vector<double> expected = product.Expected(false, true);
  product.Run(*context, false, true);
  EXPECT_EQ(product.Difference(expected), "");
}

TEST_P(MatMulTest, PropagatesNanAndInfinity) {
  const auto& [type, out_type, size] = GetParam();
  TestContext context;
  Product product(type, out_type, size, false, false, 0);
  const int64_t infinite_row = size.m - 1;
  product.a.set(infinite_row, 0, HUGE_VAL);
  product.a.set(0, size.k - 1, std::nan(""));
  product.Run(*context, false, false);
  for (int64_t col = 0; col < size.n; ++col) {
    EXPECT_TRUE(std::isnan(product.out.at(0, col)));
    EXPECT_FALSE(std::isfinite(product.out.at(infinite_row, col)));
  }
  for (int64_t row = 1; row < infinite_row; ++row) EXPECT_TRUE(std::isfinite(product.out.at(row, 0)));
}

std::string NameOfCase(const testing::TestParamInfo<MatMulTest::ParamType>& info) {
  const auto& [type, out_type, size] = info.param;
  return std::string(NameOf(type)) + "_to_" + NameOf(out_type) + "_" + std::to_string(size.m) + "x" +
         std::to_string(size.n) + "x" + std::to_string(size.k);
}

// The last two are larger than a widening panel in each direction.
const Case kCases[] = {{1, 1, 1},      {31, 33, 1},     {1, 100, 31},    {33, 31, 100},
                       {128, 128, 64}, {100, 1000, 33}, {300, 270, 130}, {31, 33, 2500}};

INSTANTIATE_TEST_SUITE_P(F32, MatMulTest,
                         testing::Combine(testing::Values(DType::kF32), testing::Values(DType::kF32),
                                          testing::ValuesIn(kCases)),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(BF16, MatMulTest,
                         testing::Combine(testing::Values(DType::kBF16), testing::Values(DType::kBF16, DType::kF32),
                                          testing::ValuesIn(kCases)),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(F16, MatMulTest,
                         testing::Combine(testing::Values(DType::kF16), testing::Values(DType::kF16, DType::kF32),
                                          testing::ValuesIn(kCases)),
                         NameOfCase);

TEST(MatMulIsaTest, RunsWithoutAvx512WhereTheEnvironmentSaysSo) {
  const char* const limit = std::getenv("DNNL_MAX_CPU_ISA");
  const bool limited = limit != nullptr && std::string(limit) == "AVX2";
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  const bool below_avx512 = isa == dnnl::cpu_isa::sse41 || isa == dnnl::cpu_isa::avx || isa == dnnl::cpu_isa::avx2 ||
                            isa == dnnl::cpu_isa::avx2_vnni;
  EXPECT_TRUE(below_avx512 || !limited) << "the tests of the widening path do not take it";
}

TEST(MatMulRangeTest, AnF16ResultThatIsTooLargeIsInfiniteAndAnF32OneIsNot) {
  TestContext context;
  const auto a = OwnedTensor::Of(DType::kF16, 1, 2, {300, 300});
  const auto b = OwnedTensor::Of(DType::kF16, 2, 2, {300, 300, 300, -300});
  const OwnedTensor half(DType::kF16, 1, 2), single(DType::kF32, 1, 2);
  kernels::MatMul(*context, {a.tensor(), b.tensor(), half.tensor()});
  kernels::MatMul(*context, {a.tensor(), b.tensor(), single.tensor()});
  EXPECT_EQ(half.values(), (std::vector<double>{HUGE_VAL, 0}));
  EXPECT_EQ(single.values(), (std::vector<double>{180000, 0}));
}

TEST(MatMulDeathTest, RefusesShapesThatDoNotMatch) {
  TestContext context;
  const OwnedTensor a(DType::kF32, 2, 3), b(DType::kF32, 4, 5), out(DType::kF32, 2, 5);
  EXPECT_DEATH(kernels::MatMul(*context, {a.tensor(), b.tensor(), out.tensor()}), "\\(2, 3\\) x \\(4, 5\\)");
}

}  // namespace
}  // namespace muster
