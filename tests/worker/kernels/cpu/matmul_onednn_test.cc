#include "worker/kernels/cpu/matmul_onednn.h"

#include <gtest/gtest.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <tuple>
#include <vector>

#include "common/plan/device_constants.h"
#include "worker/kernels/cpu/isa.h"

namespace muster::kernels {
namespace {

bool HasBf16() {
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  return isa == dnnl::cpu_isa::avx512_core || isa == dnnl::cpu_isa::avx512_core_vnni ||
         isa == dnnl::cpu_isa::avx512_core_bf16 || isa == dnnl::cpu_isa::avx512_core_amx;
}

// The three products of a linear layer of (in) to (out) over `rows` tokens, as shapes without memory.
std::vector<MatMulArgs> Linear(DType type, int64_t rows, int64_t in, int64_t out, const Tensor* bias) {
  const Tensor x(nullptr, type, {rows, in});
  const Tensor y(nullptr, type, {rows, out});
  const Tensor weight(nullptr, type, {out, in});
  const Tensor d_weight(nullptr, DType::kF32, {out, in});
  return {{x, weight, y, false, true, false, bias},
          {y, weight, x, false, false, false, nullptr},
          {y, x, d_weight, true, false, false, nullptr},
          {y, x, d_weight, true, false, true, nullptr}};
}

// (compute type, threads, hidden size of GPT-2's models and of one smaller and one larger, tokens of a micro-batch)
class ScratchTest : public testing::TestWithParam<std::tuple<DType, int, int64_t, int64_t>> {};

TEST_P(ScratchTest, EveryProductOfGpt2FitsThePlannedScratch) {
  const auto& [type, threads, hidden, rows] = GetParam();
  const bool native = type == DType::kF32 || (type == DType::kBF16 && HasBf16());
  OneDnnMatMul matmul(*SupportedRowTables().back(), threads, nullptr, nullptr);
  const int64_t vocab = 50257;
  const int64_t layers[][2] = {
      {hidden, 3 * hidden}, {hidden, hidden}, {hidden, 4 * hidden}, {4 * hidden, hidden}, {hidden, vocab}};
  for (const auto& [in, out] : layers) {
    const Tensor bias(nullptr, type, {out});
    for (const MatMulArgs& args : Linear(type, rows, in, out, &bias)) {
      EXPECT_EQ(matmul.IsNative(args), native) << in << " to " << out << (args.transpose_a ? " d_weight" : "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpt2, ScratchTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                                          testing::Values(1, 4), testing::Values(256, 768, 1024, 1280, 1600, 4096),
                                          testing::Values(1024, 8192)));

}  // namespace
}  // namespace muster::kernels
