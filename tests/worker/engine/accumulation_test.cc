// Gradient accumulation over ragged documents: the step is that of the single large batch. Trainers that averaged the
// means of micro-batches got this wrong in 2024, as micro-batches with few counted targets then weigh too much.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "common/formats/indexed_dataset.h"
#include "tests/support/temporary_directory.h"
#include "tests/worker/engine/training_harness.h"
#include "worker/data/gpt_sample_source.h"

namespace muster {
namespace {

// Documents of 2 to 20 tokens, most of them short.
std::string WriteRaggedDocuments(const TemporaryDirectory& directory, int64_t vocab) {
  IndexedDatasetWriter writer = *IndexedDatasetWriter::Create(directory.File("ragged"), TokenType::kUInt8);
  uint32_t state = 7;
  for (int document = 0; document < 60; ++document) {
    const int length = document % 5 == 0 ? 20 : 2 + document % 3;
    for (int i = 0; i < length; ++i) {
      state = state * 1664525 + 1013904223;
      const int32_t token = static_cast<int32_t>((state >> 16) % static_cast<uint32_t>(vocab));
      EXPECT_TRUE(writer.Append(absl::MakeConstSpan(&token, 1)).ok());
    }
    EXPECT_TRUE(writer.EndDocument().ok());
  }
  EXPECT_TRUE(writer.Finish().ok());
  return directory.File("ragged");
}

// The same samples of a step, in micro-batches of so many over so many replicas.
EngineConfig InMicroBatches(const EngineConfig& job, int64_t micro_batch, int64_t replicas) {
  EngineConfig config = job;
  config.layout.data = replicas;
  config.layout.micro_batch = micro_batch;
  config.layout.accumulation_steps = job.layout.global_batch() / (micro_batch * replicas);
  return config;
}

class AccumulationTest : public ::testing::Test {
 protected:
  AccumulationTest() {
    GptSampleSourceOptions options;
    options.datasets = {{WriteRaggedDocuments(directory_, job_.model.vocab)}};
    options.sequence_length = job_.layout.sequence_length;
    options.vocab = job_.model.vocab;
    options.packing = false;
    source_ = *GptSampleSource::Open(options);
  }

  TemporaryDirectory directory_;
  const EngineConfig job_ = TinyJob();
  std::unique_ptr<GptSampleSource> source_;
};

TEST_F(AccumulationTest, OfRaggedDocumentsEqualsTheSingleLargeBatch) {
  const std::vector<RankResult> single =
      RunJob(InMicroBatches(job_, job_.layout.global_batch(), 1), {.train = source_.get()});
  ASSERT_TRUE(single[0].status.ok()) << single[0].status.ToString();
  EXPECT_LT(single[0].steps[0].tokens, job_.layout.global_batch() * job_.layout.sequence_length / 2) << "not ragged";
  for (const EngineConfig& cut : {InMicroBatches(job_, 1, 1), InMicroBatches(job_, 2, 1), InMicroBatches(job_, 1, 2),
                                  InMicroBatches(job_, 2, 4)}) {
    const std::vector<RankResult> ranks = RunJob(cut, {.train = source_.get()});
    ASSERT_TRUE(ranks[0].status.ok()) << ranks[0].status.ToString();
    for (size_t step = 0; step < single[0].steps.size(); ++step) {
      const StepReport& expected = single[0].steps[step];
      EXPECT_EQ(ranks[0].steps[step].tokens, expected.tokens);
      EXPECT_NEAR(ranks[0].steps[step].loss, expected.loss, 1e-5 * expected.loss) << "step " << step + 1;
      EXPECT_NEAR(ranks[0].steps[step].gradient_norm, expected.gradient_norm, 1e-4 * expected.gradient_norm);
    }
    const WeightMap expected = MergedWeights(single);
    for (const auto& [name, weights] : MergedWeights(ranks)) {
      EXPECT_LT(RelativeError(weights, expected.at(name)), 1e-4) << name;
    }
  }
}

// What the test above could not tell apart if documents were alike: micro-batches of one document differ in their
// counted targets by a factor of more than ten.
TEST_F(AccumulationTest, HasMicroBatchesOfVeryDifferentCounts) {
  const size_t length = static_cast<size_t>(job_.layout.sequence_length);
  std::vector<int32_t> tokens(length), targets(length);
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < 8; ++i) {
    counts.push_back(*FillBatch(*source_, i, {absl::MakeSpan(tokens), absl::MakeSpan(targets), {}}));
  }
  EXPECT_GT(*std::max_element(counts.begin(), counts.end()), 10 * *std::min_element(counts.begin(), counts.end()));
}

}  // namespace
}  // namespace muster
