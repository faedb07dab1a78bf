#include "worker/engine/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "common/plan/ledger.h"
#include "tests/worker/engine/training_harness.h"
#include "worker/tensor/cpu_device.h"

namespace muster {
namespace {

// Sample i is the token i, everywhere.
class IndexSource : public SampleSource {
 public:
  int64_t sequence_length() const override { return 4; }
  absl::Status Sample(int64_t index, const SampleRows& row) const override {
    std::fill(row.tokens.begin(), row.tokens.end(), static_cast<int32_t>(index));
    std::fill(row.targets.begin(), row.targets.end(), static_cast<int32_t>(index));
    std::fill(row.document_starts.begin(), row.document_starts.end(), static_cast<int32_t>(index % 3));
    return absl::OkStatus();
  }
};

Layout TwoReplicas() { return {.data = 2, .micro_batch = 2, .accumulation_steps = 2, .sequence_length = 4}; }

StageMemory WholeModelMemory(Device& device, const Layout& layout) {
  const ModelShape model = TinyModel();
  return *StageMemory::Allocate(device, BuildLedger(model, layout, {{0, model.units()}}, 0));
}

std::vector<int32_t> FirstTokens(const MicroBatch& batch) {
  std::vector<int32_t> firsts;
  for (int64_t row = 0; row < batch.tokens.elements(); row += 4) firsts.push_back(batch.tokens.as<int32_t>()[row]);
  return firsts;
}

TEST(TrainingBatches, ContinueWhereTheCheckpointStopped) {
  const std::unique_ptr<Device> device = MakeCpuDevice();
  const std::unique_ptr<Clock> clock = MakeSystemClock();
  const IndexSource source;
  StageMemory memory = WholeModelMemory(*device, TwoReplicas());
  absl::StatusOr<TrainingBatches> batches = TrainingBatches::Start(
      source, *clock, TwoReplicas(), /*replica=*/1, {.steps_done = 3, .consumed_samples = 100, .last_step = 9},
      /*loader_threads=*/1, memory);
  ASSERT_TRUE(batches.ok()) << batches.status().ToString();
  ASSERT_TRUE(batches->Next().ok());
  // The step is samples 100 to 107, of which the second replica has the last four.
  EXPECT_THAT(FirstTokens(batches->At(0, 1)), testing::ElementsAre(104, 105));
  EXPECT_THAT(FirstTokens(batches->At(1, 1)), testing::ElementsAre(106, 107));
  EXPECT_EQ(batches->counted_targets(), 16);
  EXPECT_FALSE(batches->At(0, 1).accumulate);
  EXPECT_TRUE(batches->At(1, 1).accumulate);
}

TEST(TrainingBatches, WithADocumentMaskAStageInTheMiddleReadsWhereDocumentsBegin) {
  const std::unique_ptr<Device> device = MakeCpuDevice();
  const std::unique_ptr<Clock> clock = MakeSystemClock();
  const IndexSource source;
  Layout layout = TwoReplicas();
  layout.pipeline = 3;
  const int64_t middle_rank = RankOf(layout, {.pipeline = 1});
  const auto batches_of = [&](bool document_mask) {
    layout.document_mask = document_mask;
    StageMemory memory =
        *StageMemory::Allocate(*device, BuildLedger(TinyModel(), layout, {{0, 2}, {2, 4}, {4, 10}}, middle_rank));
    TrainingBatches batches = *TrainingBatches::Start(source, *clock, layout, 0, {.last_step = 1}, 1, memory);
    EXPECT_TRUE(batches.Next().ok());
    const MicroBatch batch = batches.At(1, 1);  // samples 2 and 3; sample i says i mod 3
    const int32_t* starts = batch.document_starts.as<int32_t>();
    return starts == nullptr ? std::vector<int32_t>() : std::vector<int32_t>(starts, starts + 8);
  };
  EXPECT_THAT(batches_of(true), testing::ElementsAre(2, 2, 2, 2, 0, 0, 0, 0));
  EXPECT_TRUE(batches_of(false).empty());
}

TEST(TrainingBatches, RefuseASourceOfOtherLength) {
  const std::unique_ptr<Device> device = MakeCpuDevice();
  const std::unique_ptr<Clock> clock = MakeSystemClock();
  Layout layout = TwoReplicas();
  layout.sequence_length = 8;
  StageMemory memory = WholeModelMemory(*device, layout);
  const absl::StatusOr<TrainingBatches> batches =
      TrainingBatches::Start(IndexSource(), *clock, layout, 0, {.last_step = 1}, 1, memory);
  EXPECT_EQ(batches.status().message(), "training data has sequences of 4 tokens, sequence_length is 8");
}

TEST(ValidationBatches, DealWindowsToReplicasAndFillUpWithWhatDoesNotCount) {
  const std::unique_ptr<Device> device = MakeCpuDevice();
  const IndexSource source;
  StageMemory memory = WholeModelMemory(*device, TwoReplicas());
  ValidationBatches first(&source, TwoReplicas(), 0, /*windows=*/5, memory);
  EXPECT_EQ(first.micro_batches(), 2);
  EXPECT_THAT(FirstTokens(*first.Read(0)), testing::ElementsAre(0, 1));
  EXPECT_THAT(FirstTokens(*first.Read(1)), testing::ElementsAre(4, 0));
  EXPECT_EQ(first.counted_targets(), 4);

  ValidationBatches second(&source, TwoReplicas(), 1, /*windows=*/5, memory);
  EXPECT_EQ(second.micro_batches(), 2);
  EXPECT_THAT(FirstTokens(*second.Read(0)), testing::ElementsAre(2, 3));
  EXPECT_EQ(second.counted_targets(), 8);
  const absl::StatusOr<MicroBatch> empty = second.Read(1);
  ASSERT_TRUE(empty.ok());
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(empty->targets.as<int32_t>()[i], kIgnoredSampleTarget);
  EXPECT_EQ(second.counted_targets(), 0);
}

TEST(ValidationBatches, AreNoneWithoutASource) {
  const std::unique_ptr<Device> device = MakeCpuDevice();
  StageMemory memory = WholeModelMemory(*device, TwoReplicas());
  EXPECT_EQ(ValidationBatches(nullptr, TwoReplicas(), 0, 5, memory).micro_batches(), 0);
}

}  // namespace
}  // namespace muster
