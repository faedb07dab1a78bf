// A document mask in whole jobs: it changes what is learnt, and the result does not depend on how the model is cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/engine/training_harness.h"

namespace muster {
namespace {

EngineConfig MaskedJob() {
  EngineConfig job = TinyJob();
  job.layout.document_mask = true;
  return job;
}

TEST(DocumentMask, ChangesWhatIsLearnt) {
  const std::vector<RankResult> masked = RunJob(MaskedJob());
  ASSERT_TRUE(masked[0].status.ok()) << masked[0].status.ToString();
  EXPECT_NE(Losses(masked).front(), Losses(RunJob(TinyJob())).front());
}

TEST(DocumentMask, EveryStageOfAPipelineHasIt) {
  ExpectIdentical(RunJob(MaskedJob()), RunJob(Cut(MaskedJob(), {3, 6}, 1)));
}

TEST(DocumentMask, NothingOfAnotherDocumentIsSeen) {
  // Tokens of a document are replaced before the last document of each sample: the loss of the last one stays.
  class LastDocumentSource : public SyntheticSource {
   public:
    LastDocumentSource(const EngineConfig& job, int32_t shift)
        : SyntheticSource(job.layout.sequence_length, job.model.vocab), shift_(shift) {}
    absl::Status Sample(int64_t index, const SampleRows& row) const override {
      const absl::Status status = SyntheticSource::Sample(index, row);
      if (row.document_starts.empty()) return status;
      for (int32_t t = 0; t < row.document_starts.back(); ++t) {
        row.tokens[static_cast<size_t>(t)] = (row.tokens[static_cast<size_t>(t)] + shift_) % 61;
        row.targets[static_cast<size_t>(t)] = kIgnoredSampleTarget;
      }
      return status;
    }

   private:
    const int32_t shift_;
  };
  EngineConfig job = MaskedJob();
  job.training.steps = 1;
  const LastDocumentSource one(job, 0), other(job, 17);
  EXPECT_EQ(Losses(RunJob(job, {.train = &one})).front(), Losses(RunJob(job, {.train = &other})).front());
}

}  // namespace
}  // namespace muster
