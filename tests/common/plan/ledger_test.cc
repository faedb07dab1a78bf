#include "common/plan/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "common/plan/arena.h"

namespace muster {
namespace {

// Every tensor's bytes are multiples of kArenaAlignment, so that sums are exact: 4 layers, hidden 128, 4 heads, 128
// tokens.
ModelShape Shape() {
  return {.family = ModelFamily::kGpt2,
          .layers = 4,
          .hidden = 128,
          .heads = 4,
          .kv_heads = 4,
          .ffn = 512,
          .vocab = 128,
          .context = 64};
}

Layout OneRank(Precision precision) {
  return {.micro_batch = 2, .accumulation_steps = 4, .sequence_length = 64, .precision = precision};
}

const LedgerEntry* Find(const Ledger& ledger, const std::string& name) {
  const auto found = std::find_if(ledger.entries.begin(), ledger.entries.end(),
                                  [&](const LedgerEntry& entry) { return entry.name == name; });
  return found == ledger.entries.end() ? nullptr : &*found;
}

int64_t StateBytes(const Ledger& ledger) {
  return ledger.bytes(MemoryCategory::kParameters) + ledger.bytes(MemoryCategory::kGradients) +
         ledger.bytes(MemoryCategory::kOptimizerState);
}

TEST(Ledger, TakesSixteenBytesPerParameterInFp32AndEighteenInBf16) {
  ModelShape shape = Shape();
  shape.tied = false;
  const UnitRange all = {0, shape.units()};
  const int64_t parameters = ParameterCount(shape);
  EXPECT_EQ(StateBytes(BuildLedger(shape, OneRank(Precision::kFp32), {all}, 0)), 16 * parameters);
  EXPECT_EQ(StateBytes(BuildLedger(shape, OneRank(Precision::kBf16), {all}, 0)), 18 * parameters);
}

TEST(Ledger, GivesATiedWeightOneMoreAccumulatorAndNothingElse) {
  const ModelShape shape = Shape();
  const Ledger ledger = BuildLedger(shape, OneRank(Precision::kBf16), {{0, shape.units()}}, 0);
  EXPECT_EQ(StateBytes(ledger), 18 * ParameterCount(shape) + 4 * shape.vocab * shape.hidden);
}

TEST(Ledger, KeepsACopyOfATiedWeightOnBothEndsOfAPipeline) {
  const ModelShape shape = Shape();
  Layout layout = OneRank(Precision::kBf16);
  layout.pipeline = 3;
  const Ledger first = BuildLedger(shape, layout, {{0, 3}}, 0);
  const Ledger middle = BuildLedger(shape, layout, {{3, 6}}, 1);
  const Ledger last = BuildLedger(shape, layout, {{6, shape.units()}}, 2);
  EXPECT_EQ(StateBytes(first) + StateBytes(middle) + StateBytes(last),
            18 * (ParameterCount(shape) + shape.vocab * shape.hidden));
  for (const Ledger* end : {&first, &last}) EXPECT_NE(Find(*end, kTiedPeerGradient), nullptr);
  EXPECT_EQ(Find(middle, kTiedPeerGradient), nullptr);
  EXPECT_EQ(Find(last, "gradient/embedding.token.weight"), nullptr);
}

TEST(Ledger, SpreadsOptimizerStateOverTheReplicas) {
  const ModelShape shape = Shape();
  Layout layout = OneRank(Precision::kBf16);
  layout.data = 4;
  const std::vector<UnitRange> all = {{0, shape.units()}};
  const int64_t whole = BuildLedger(shape, layout, all, 0).bytes(MemoryCategory::kOptimizerState);
  EXPECT_EQ(whole, 12 * ParameterCount(shape));
  layout.optimizer_sharding = true;
  // Tensors of one dimension are of 128, 384 and 512 elements: quarters of the first two are rounded up to 256 bytes.
  int64_t expected = 0;
  for (const ParameterInfo& parameter : Parameters(shape)) {
    expected += 3 * ((parameter.elements() + 255) / 256 * 256);  // 4 bytes of a quarter of the elements
  }
  EXPECT_LT(expected, whole * 26 / 100);
  for (int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(BuildLedger(shape, layout, all, rank).bytes(MemoryCategory::kOptimizerState), expected);
  }
}

TEST(Ledger, HasNoMoreEntriesForAThousandMicroBatchesThanForFour) {
  const ModelShape shape = Shape();
  Layout layout = OneRank(Precision::kFp32);
  layout.pipeline = 2;
  layout.accumulation_steps = 4;
  const Ledger four = BuildLedger(shape, layout, {{0, 5}}, 0);
  layout.accumulation_steps = 1000;
  const Ledger thousand = BuildLedger(shape, layout, {{0, 5}}, 0);
  EXPECT_EQ(thousand.entries.size(), four.entries.size());
  EXPECT_EQ(thousand.bytes(MemoryCategory::kActivations), four.bytes(MemoryCategory::kActivations));
}

TEST(Ledger, SavesAsManySlotsAsMicroBatchesAreInFlight) {
  const ModelShape shape = Shape();
  Layout layout = OneRank(Precision::kFp32);
  layout.pipeline = 4;
  const UnitRange stages[] = {{0, 3}, {3, 5}, {5, 8}, {8, shape.units()}};
  const std::string saved[] = {"saved/0.attention/qkv", "saved/1.attention/qkv", "saved/2.attention/qkv",
                               "saved/head/logits"};
  for (int64_t stage = 0; stage < 4; ++stage) {
    const Ledger ledger = BuildLedger(shape, layout, {stages[stage]}, stage);
    const LedgerEntry* entry = Find(ledger, saved[stage]);
    ASSERT_NE(entry, nullptr) << saved[stage];
    EXPECT_EQ(entry->slots, 4 - stage) << saved[stage];
  }
}

TEST(Ledger, EndsASavedTensorsLifeAtItsUnitsBackwardWhenOneMicroBatchIsInFlight) {
  const ModelShape shape = Shape();
  const Ledger ledger = BuildLedger(shape, OneRank(Precision::kFp32), {{0, shape.units()}}, 0);
  const LedgerEntry* qkv = Find(ledger, "saved/1.attention/qkv");  // unit 3 of 10
  ASSERT_NE(qkv, nullptr);
  EXPECT_EQ(qkv->lifetime.first_tick, 3);
  EXPECT_EQ(qkv->lifetime.last_tick, 16);
  const LedgerEntry* transient = Find(ledger, "transient/1.attention/d_qkv");
  ASSERT_NE(transient, nullptr);
  EXPECT_EQ(transient->lifetime.first_tick, 16);
  EXPECT_EQ(transient->lifetime.last_tick, 16);
}

TEST(Ledger, BeginsAnInputsLifeWhereTheUnitBeforeWritesIt) {
  const ModelShape shape = Shape();
  const Ledger ledger = BuildLedger(shape, OneRank(Precision::kFp32), {{0, shape.units()}}, 0);
  const LedgerEntry* input = Find(ledger, "saved/1.attention/input");  // unit 3
  ASSERT_NE(input, nullptr);
  EXPECT_EQ(input->lifetime.first_tick, 2);
  EXPECT_EQ(input->lifetime.last_tick, 16);
}

TEST(Ledger, SharesTheMemoryOfTransientsBetweenUnits) {
  const ModelShape shape = Shape();
  const Ledger ledger = BuildLedger(shape, OneRank(Precision::kFp32), {{0, shape.units()}}, 0);
  int64_t sum = 0;
  for (const LedgerEntry& entry : ledger.entries) sum += entry.bytes();
  const ArenaPlan plan = PlaceLedger(ledger, MemorySpace::kDevice);
  EXPECT_LT(plan.bytes, sum);
  EXPECT_GE(plan.bytes, plan.lower_bound_bytes);
}

TEST(Ledger, NamesEveryEntryOnceAndAlignsIt) {
  const ModelShape shape = Shape();
  Layout layout = OneRank(Precision::kBf16);
  layout.data = 2;
  layout.pipeline = 2;
  layout.sequence_length = 17;
  for (int64_t rank = 0; rank < 4; ++rank) {
    const UnitRange units = rank < 2 ? UnitRange{0, 4} : UnitRange{4, shape.units()};
    const Ledger ledger = BuildLedger(shape, layout, {units}, rank);
    std::set<std::string> names;
    for (const LedgerEntry& entry : ledger.entries) {
      EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
      EXPECT_EQ(entry.slot_bytes % kArenaAlignment, 0) << entry.name;
      EXPECT_GT(entry.slot_bytes, 0) << entry.name;
      EXPECT_LT(entry.lifetime.last_tick, ledger.ticks) << entry.name;
    }
  }
}

// Of a layer's activations, kept by every micro-batch in flight, what each mode still keeps.
TEST(Ledger, RecomputationKeepsTheLargeProductsOrOnlyTheInputs) {
  const ModelShape shape = Shape();
  Layout layout = OneRank(Precision::kBf16);
  layout.pipeline = 2;
  const auto bytes_of = [&](Recompute recompute, const std::string& kind) {
    layout.recompute = recompute;
    int64_t bytes = 0;
    for (const LedgerEntry& entry : BuildLedger(shape, layout, {{1, 3}}, 0).entries) {
      if (entry.name.rfind(kind, 0) == 0) bytes += entry.bytes();
    }
    return bytes;
  };
  const int64_t rows = 128;
  const int64_t slots = 2;
  const int64_t input = rows * 128 * 2;
  const int64_t products = rows * (3 * 128 + 512) * 2;
  const int64_t norms = 2 * (input + 2 * rows * 4);
  const int64_t others = input + rows * 4 * 4 + rows * 512 * 2;  // attention's output and log-sum-exp, GELU's output
  EXPECT_EQ(bytes_of(Recompute::kNone, "saved/"), slots * (2 * input + products + norms + others));
  EXPECT_EQ(bytes_of(Recompute::kSelective, "saved/"), slots * (2 * input + products));
  EXPECT_EQ(bytes_of(Recompute::kFull, "saved/"), slots * 2 * input);
  EXPECT_EQ(bytes_of(Recompute::kNone, "rebuilt/"), 0);
  EXPECT_EQ(bytes_of(Recompute::kSelective, "rebuilt/"), norms + others);
  EXPECT_EQ(bytes_of(Recompute::kFull, "rebuilt/"), norms + others + products);
}

TEST(Ledger, RebuiltTensorsLiveInTheTwoPassesOfTheirUnit) {
  const ModelShape shape = Shape();
  Layout layout = OneRank(Precision::kBf16);
  layout.recompute = Recompute::kFull;
  const Ledger ledger = BuildLedger(shape, layout, {{0, shape.units()}}, 0);
  const LedgerEntry* qkv = Find(ledger, "rebuilt/1.attention/qkv");  // unit 3 of 10
  ASSERT_NE(qkv, nullptr);
  EXPECT_EQ(qkv->lifetime.first_tick, 3);
  EXPECT_EQ(qkv->lifetime.last_tick, 3);
  ASSERT_TRUE(qkv->again.has_value());
  EXPECT_EQ(qkv->again->first_tick, 16);
  EXPECT_EQ(qkv->again->last_tick, 16);
}

TEST(Ledger, ChunksOfTheLossHoldThatManyRowsOfLogits) {
  const ModelShape shape = Shape();
  Layout layout = OneRank(Precision::kBf16);
  const Ledger whole = BuildLedger(shape, layout, {{0, shape.units()}}, 0);
  EXPECT_EQ(Find(whole, "saved/head/logits")->bytes(), 128 * 128 * 2);
  layout.loss_chunk_tokens = 32;
  const Ledger chunked = BuildLedger(shape, layout, {{0, shape.units()}}, 0);
  EXPECT_EQ(Find(chunked, "saved/head/logits"), nullptr);
  EXPECT_EQ(Find(chunked, "rebuilt/head/logits")->bytes(), 32 * 128 * 2);
}

TEST(Ledger, TensorRanksShareRowsHeadsWidthAndVocabulary) {
  const ModelShape shape = Shape();
  Layout layout = OneRank(Precision::kBf16);
  const Ledger one = BuildLedger(shape, layout, {{0, shape.units()}}, 0);
  layout.tensor = 2;
  const Ledger half = BuildLedger(shape, layout, {{0, shape.units()}}, 1);
  for (const LedgerEntry& entry : half.entries) {
    const bool activation = entry.name.rfind("saved/", 0) == 0 && entry.name != "saved/head/losses" &&
                            entry.name != "saved/head/lse";  // all ranks know the loss of every row
    if (!activation) continue;
    ASSERT_NE(Find(one, entry.name), nullptr) << entry.name;
    EXPECT_EQ(2 * entry.bytes(), Find(one, entry.name)->bytes()) << entry.name;
  }
  EXPECT_EQ(Find(half, kTensorRows)->bytes(), 128 * 128 * 2);
  EXPECT_EQ(Find(one, kTensorRows), nullptr);
}

TEST(Ledger, StagesTokensOnlyWhereTheyAreRead) {
  const ModelShape shape = Shape();
  Layout layout = OneRank(Precision::kFp32);
  layout.pipeline = 3;
  EXPECT_GT(BuildLedger(shape, layout, {{0, 3}}, 0).bytes(MemoryCategory::kStaging), 0);
  EXPECT_EQ(BuildLedger(shape, layout, {{3, 6}}, 1).bytes(MemoryCategory::kStaging), 0);
  EXPECT_GT(BuildLedger(shape, layout, {{6, shape.units()}}, 2).bytes(MemoryCategory::kStaging), 0);
}

}  // namespace
}  // namespace muster
