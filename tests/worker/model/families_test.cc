// What a layout may change about how a whole model is computed, and what it may not change about the result.
#include <gtest/gtest.h>

#include <string>

#include "common/plan/arena.h"
#include "common/plan/ledger.h"
#include "tests/worker/model/model_harness.h"
#include "worker/kernels/kernels.h"

namespace muster {
namespace {

ModelShape Gpt2() {
  return {.layers = 2, .hidden = 16, .heads = 4, .kv_heads = 4, .ffn = 64, .vocab = 53, .context = 12};
}

ModelShape Llama() {
  return {.family = ModelFamily::kLlama,
          .layers = 2,
          .hidden = 16,
          .heads = 4,
          .kv_heads = 2,
          .ffn = 24,
          .vocab = 53,
          .context = 12,
          .tied = false,
          .qkv_bias = false};
}

Layout OneRank(Precision precision = Precision::kFp32) {
  return {.micro_batch = 2, .sequence_length = 12, .precision = precision};
}

ModelResult RunModel(const ModelShape& shape, const Layout& layout, const TestBatch& batch) {
  ModelHarness model(shape, layout);
  absl::StatusOr<ModelResult> result = model.Run(batch);
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return *result;
}

ModelResult RunModel(const ModelShape& shape, const Layout& layout) {
  return RunModel(shape, layout, MakeTestBatch(shape, layout));
}

class Family : public testing::TestWithParam<ModelShape> {};

std::string FamilyName(const testing::TestParamInfo<ModelShape>& info) {
  return info.param.family == ModelFamily::kGpt2 ? "Gpt2" : "Llama";
}

INSTANTIATE_TEST_SUITE_P(Every, Family, testing::Values(Gpt2(), Llama()), FamilyName);

TEST_P(Family, RecomputingGivesTheSameBits) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    Layout layout = OneRank(precision);
    const ModelResult kept = RunModel(GetParam(), layout);
    for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
      layout.recompute = recompute;
      const ModelResult rebuilt = RunModel(GetParam(), layout);
      EXPECT_EQ(rebuilt.loss_sum, kept.loss_sum);
      EXPECT_EQ(rebuilt.gradients, kept.gradients);
    }
  }
}

TEST_P(Family, ChunksOfLogitsChangeNothingButRounding) {
  Layout layout = OneRank();
  const ModelResult whole = RunModel(GetParam(), layout);
  for (const int64_t chunk : {int64_t{8}, int64_t{5}, int64_t{1}}) {  // 24 rows: three of them, and ragged ones
    layout.loss_chunk_tokens = chunk;
    const ModelResult chunked = RunModel(GetParam(), layout);
    EXPECT_NEAR(chunked.loss_sum, whole.loss_sum, 1e-6 * whole.loss_sum) << chunk;
    EXPECT_LE(LargestRelativeError(chunked.gradients, whole.gradients), 1e-6) << chunk;
  }
}

TEST_P(Family, BindsExactlyWhatWasPlanned) {
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    for (const int64_t chunk : {0, 8}) {
      Layout layout = OneRank(Precision::kBf16);
      layout.recompute = recompute;
      layout.loss_chunk_tokens = chunk;
      ModelHarness model(GetParam(), layout);
      ASSERT_TRUE(model.Run(MakeTestBatch(GetParam(), layout)).ok());
      for (const MemoryCategory category :
           {MemoryCategory::kParameters, MemoryCategory::kGradients, MemoryCategory::kActivations,
            MemoryCategory::kLogits, MemoryCategory::kWorkspace, MemoryCategory::kCommunication}) {
        EXPECT_EQ(model.memory().bound_bytes()[static_cast<size_t>(category)], model.memory().ledger().bytes(category))
            << MemoryCategoryName(category) << " " << static_cast<int>(recompute) << " " << chunk;
      }
    }
  }
}

// Two documents in one sequence that do not see each other are as two sequences. LLaMA's positions are relative, so
// that the second one may begin anywhere.
TEST(DocumentMask, APackedSequenceIsAsItsDocumentsApart) {
  const ModelShape shape = Llama();
  Layout layout = OneRank();
  layout.micro_batch = 1;
  TestBatch packed = MakeTestBatch(shape, layout);
  const int64_t sequence = layout.sequence_length;
  constexpr int64_t kSecond = 5;  // where the second document starts
  for (int64_t i = 0; i < sequence; ++i) packed.document_starts.push_back(i < kSecond ? 0 : kSecond);
  const ModelResult together = RunModel(shape, layout, packed);

  layout.micro_batch = 2;
  TestBatch apart;
  apart.tokens.assign(static_cast<size_t>(2 * sequence), 0);
  apart.targets.assign(static_cast<size_t>(2 * sequence), kernels::kIgnoredTarget);
  for (int64_t i = 0; i < sequence; ++i) {
    const size_t to = static_cast<size_t>(i < kSecond ? i : sequence + i - kSecond);
    apart.tokens[to] = packed.tokens[static_cast<size_t>(i)];
    apart.targets[to] = packed.targets[static_cast<size_t>(i)];
  }
  const ModelResult separate = RunModel(shape, layout, apart);
  EXPECT_NEAR(together.loss_sum, separate.loss_sum, 1e-5 * separate.loss_sum);
  EXPECT_LE(LargestRelativeError(together.gradients, separate.gradients), 1e-5);

  packed.document_starts.clear();
  layout.micro_batch = 1;
  EXPECT_GT(std::abs(RunModel(shape, layout, packed).loss_sum - separate.loss_sum), 1e-3);
}

}  // namespace
}  // namespace muster
