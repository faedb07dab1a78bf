#include "common/formats/ngram_entropy.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

class NgramEntropyTest : public ::testing::Test {
 protected:
  IndexedDataset Make(const std::string& name, const std::vector<int32_t>& tokens, TokenType type = TokenType::kUInt8) {
    IndexedDatasetWriter writer = IndexedDatasetWriter::Create(directory_.File(name), type).value();
    EXPECT_TRUE(writer.Append(tokens).ok());
    EXPECT_TRUE(writer.EndDocument().ok());
    EXPECT_TRUE(writer.Finish().ok());
    return IndexedDataset::Open(directory_.File(name)).value();
  }

  TemporaryDirectory directory_;
};

TEST_F(NgramEntropyTest, AgreesWithCountsByHand) {
  // c(0) = 3, c(1) = 2, V = 2: p(0) = 4/7, p(1) = 3/7. Pairs 00: 1, 01: 1, 11: 1, 10: 1, contexts 2 and 2.
  const NgramEntropy entropy = ScoreNgrams(Make("train", {0, 0, 1, 1, 0}), Make("val", {0, 1, 0})).value();
  EXPECT_DOUBLE_EQ(entropy.unigram_nats, -(2 * std::log(4.0 / 7) + std::log(3.0 / 7)) / 3);
  EXPECT_DOUBLE_EQ(entropy.bigram_nats, -(std::log((1 + 3.0 / 7) / 3) + std::log((1 + 4.0 / 7) / 3)) / 2);
  EXPECT_EQ(entropy.train_tokens, 5);
  EXPECT_EQ(entropy.held_out_tokens, 3);
}

TEST_F(NgramEntropyTest, SeesThatAnAlternationIsPredictable) {
  std::vector<int32_t> alternating;
  for (int i = 0; i < 20000; ++i) alternating.push_back(i % 2);
  const NgramEntropy entropy = ScoreNgrams(Make("train", alternating), Make("val", alternating)).value();
  EXPECT_NEAR(entropy.unigram_nats, std::log(2.0), 1e-3);
  EXPECT_NEAR(entropy.bigram_nats, 0, 1e-3);
}

TEST_F(NgramEntropyTest, ChargesAFiniteCostForWhatWasNeverSeen) {
  const NgramEntropy entropy = ScoreNgrams(Make("train", {0, 1, 0, 1}), Make("val", {5, 3, 5})).value();
  EXPECT_DOUBLE_EQ(entropy.unigram_nats, std::log(10.0));  // p = 1 / (4 + 6)
  EXPECT_DOUBLE_EQ(entropy.bigram_nats, std::log(10.0));   // contexts 5 and 3 are unknown: the unigram decides
}

TEST_F(NgramEntropyTest, ProbabilitiesOfEveryContextAddUpToOne) {
  const IndexedDataset train = Make("train", {0, 2, 1, 1, 2, 0, 0, 2});
  // Scoring "context, x" gives -ln p(x | context): summed over x it must be a distribution.
  for (int32_t context = 0; context < 3; ++context) {
    double sum = 0;
    for (int32_t x = 0; x < 3; ++x) {
      sum += std::exp(-ScoreNgrams(train, Make("val", {context, x})).value().bigram_nats);
    }
    EXPECT_NEAR(sum, 1, 1e-12) << context;
  }
}

TEST_F(NgramEntropyTest, TakesMemoryForTheTokensThereAreAndNotForTheHighest) {
  const int32_t high = 2'000'000'000;
  const IndexedDataset train = Make("train", {high, high}, TokenType::kInt32);
  const NgramEntropy entropy = ScoreNgrams(train, Make("val", {high, high}, TokenType::kInt32)).value();
  EXPECT_DOUBLE_EQ(entropy.unigram_nats, -std::log(3.0 / 2'000'000'003.0));
}

TEST_F(NgramEntropyTest, RefusesADatasetOfOneToken) {
  EXPECT_EQ(ScoreNgrams(Make("train", {1, 2}), Make("val", {1})).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster
