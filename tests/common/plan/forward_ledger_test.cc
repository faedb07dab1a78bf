#include "common/plan/forward_ledger.h"

#include <algorithm>

#include "common/plan/arena.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

ModelShape Gpt2(int64_t layers) {
  ModelShape shape;
  shape.layers = layers;
  shape.hidden = 64;
  shape.heads = shape.kv_heads = 4;
  shape.ffn = 256;
  shape.vocab = 257;
  shape.context = 128;
  return shape;
}

Layout OneSequence() {
  Layout layout;
  layout.sequence_length = 128;
  return layout;
}

const LedgerEntry* Find(const Ledger& ledger, const std::string& name) {
  for (const LedgerEntry& entry : ledger.entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

TEST(ForwardLedger, HasTheParametersAndNothingOfTraining) {
  const ModelShape shape = Gpt2(2);
  const Ledger forward = BuildForwardLedger(shape, OneSequence());
  const Ledger training = BuildLedger(shape, OneSequence(), {{0, shape.units()}}, 0);
  EXPECT_EQ(forward.bytes(MemoryCategory::kParameters), training.bytes(MemoryCategory::kParameters));
  EXPECT_EQ(forward.bytes(MemoryCategory::kGradients), 0);
  EXPECT_EQ(forward.bytes(MemoryCategory::kOptimizerState), 0);
  EXPECT_NE(Find(forward, "staging/validation"), nullptr);
  EXPECT_EQ(Find(forward, "transient/0.ffn/d_up"), nullptr);
  EXPECT_EQ(forward.entries.size() + forward.left_out.size(), training.entries.size());
}

TEST(ForwardLedger, TheInputOfAUnitLivesFromTheUnitBeforeItToTheOneBehindIt) {
  const Ledger forward = BuildForwardLedger(Gpt2(3), OneSequence());
  const Lifetime input = Find(forward, "saved/1.ffn/input")->lifetime;  // unit 4
  EXPECT_EQ(input.first_tick, 3);
  EXPECT_EQ(input.last_tick, 5);
}

TEST(ForwardLedger, LayersShareTheMemoryOfTheirActivations) {
  const auto activation_bytes = [](int64_t layers) {
    Ledger ledger = BuildForwardLedger(Gpt2(layers), OneSequence());
    const int64_t parameters = ledger.bytes(MemoryCategory::kParameters);
    return PlaceLedger(ledger, MemorySpace::kDevice).bytes - parameters;
  };
  EXPECT_EQ(activation_bytes(12), activation_bytes(4));
}

}  // namespace
}  // namespace muster
