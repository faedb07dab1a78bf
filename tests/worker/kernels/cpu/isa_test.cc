#include "worker/kernels/cpu/isa.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/worker/kernels/kernel_test_support.h"

namespace muster::kernels {
namespace {

constexpr int64_t kRows = 19;

// Every table that this machine runs, on rows of that many columns. The best is what all other tests compare with the
// references.
class IsaTest : public testing::TestWithParam<int64_t> {
 protected:
  template <typename Kernel>
  void Run(const RowTable& table, const Kernel& kernel) {
    RunRows(table, kernel, RowBox{0, kRows, GetParam(), 0, GetParam()});
  }

  const std::vector<const RowTable*> tables_ = SupportedRowTables();
};

TEST_P(IsaTest, TheBestTableIsTheLast) {
  ASSERT_FALSE(tables_.empty());
  for (const RowTable* table : tables_) EXPECT_LE(std::string(table->isa), tables_.back()->isa);
}

TEST_P(IsaTest, SumsAndNormalisesToTheSameBits) {
  const int64_t cols = GetParam();
  const auto x = OwnedTensor::Random(DType::kBF16, kRows, cols, 1);
  const auto weight = OwnedTensor::Random(DType::kBF16, 1, cols, 2);
  std::vector<std::vector<uint8_t>> outs, rstds;
  for (const RowTable* table : tables_) {
    const OwnedTensor out(DType::kBF16, kRows, cols), mean(DType::kF32, 1, kRows), rstd(DType::kF32, 1, kRows);
    Run(*table, LayerNormForwardRows<BF16>{x.tensor().as<BF16>(), weight.tensor().as<BF16>(),
                                           weight.tensor().as<BF16>(), out.tensor().as<BF16>(),
                                           mean.tensor().as<float>(), rstd.tensor().as<float>(), cols, cols, 1e-5f});
    outs.push_back(out.memory());
    rstds.push_back(rstd.memory());
  }
  for (size_t i = 1; i < outs.size(); ++i) {
    EXPECT_EQ(outs[i], outs[0]) << tables_[i]->isa;
    EXPECT_EQ(rstds[i], rstds[0]) << tables_[i]->isa;
  }
}

TEST_P(IsaTest, ExpAndMaximumGiveTheSameBits) {
  const int64_t cols = GetParam();
  const auto logits = OwnedTensor::Random(DType::kF32, kRows, cols, 3, 5);
  const OwnedTensor targets(DType::kI32, 1, kRows);
  std::vector<std::vector<uint8_t>> all;
  for (const RowTable* table : tables_) {
    const OwnedTensor stats(DType::kF32, kRows, kCrossEntropyStatistics);
    Run(*table, CrossEntropyStatisticsRows<float>{logits.tensor().as<float>(), targets.tensor().as<int32_t>(),
                                                  stats.tensor().as<float>(), cols, 0, false});
    all.push_back(stats.memory());
  }
  for (size_t i = 1; i < all.size(); ++i) EXPECT_EQ(all[i], all[0]) << tables_[i]->isa;
}

TEST_P(IsaTest, RoundingGivesTheSameBits) {
  const int64_t cols = GetParam();
  const auto from = OwnedTensor::Random(DType::kF32, kRows, cols, 4, 1e-4);  // some are subnormal in f16
  std::vector<std::vector<uint8_t>> all;
  for (const RowTable* table : tables_) {
    const OwnedTensor half(DType::kF16, kRows, cols), brain(DType::kBF16, kRows, cols);
    Run(*table, CastRows<float, F16>{from.tensor().as<float>(), half.tensor().as<F16>(), cols, cols});
    Run(*table, CastRows<float, BF16>{from.tensor().as<float>(), brain.tensor().as<BF16>(), cols, cols});
    all.push_back(half.memory());
    const std::vector<uint8_t> more = brain.memory();
    all.back().insert(all.back().end(), more.begin(), more.end());
  }
  for (size_t i = 1; i < all.size(); ++i) EXPECT_EQ(all[i], all[0]) << tables_[i]->isa;
}

TEST_P(IsaTest, KernelsWithTwoResultsGiveTheSameBits) {
  const int64_t cols = GetParam();
  const auto d_out = OwnedTensor::Random(DType::kF16, kRows, cols, 5);
  const auto gate_up = OwnedTensor::Random(DType::kF16, kRows, 2 * cols, 6, 4);
  std::vector<std::vector<uint8_t>> all;
  for (const RowTable* table : tables_) {
    const OwnedTensor d_gate_up(DType::kF16, kRows, 2 * cols);
    const F16* const gate = gate_up.tensor().as<F16>();
    F16* const d_gate = d_gate_up.tensor().as<F16>();
    Run(*table, SwiGluBackwardRows<F16>{d_out.tensor().as<F16>(), gate, gate + cols, d_gate, d_gate + cols, cols,
                                        2 * cols, 2 * cols});
    all.push_back(d_gate_up.memory());
  }
  for (size_t i = 1; i < all.size(); ++i) EXPECT_EQ(all[i], all[0]) << tables_[i]->isa;
}

INSTANTIATE_TEST_SUITE_P(Columns, IsaTest, testing::Values(1, 31, 33, 100, 1000));

}  // namespace
}  // namespace muster::kernels
