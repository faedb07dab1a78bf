// However a model is cut into stages, and with as many replicas, it trains to the same bits.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/worker/engine/training_harness.h"

namespace muster {
namespace {

struct Case {
  Precision precision;
  int64_t replicas;
};

class PipelineCut : public testing::TestWithParam<Case> {};

TEST_P(PipelineCut, ChangesNoBitOfLossesAndWeights) {
  EngineConfig job = TinyJob();
  job.layout.precision = GetParam().precision;
  job.layout.accumulation_steps = 16;
  const auto run = [&](const std::vector<int64_t>& cuts, int64_t interleave = 1) {
    return RunJob(Cut(job, cuts, GetParam().replicas, interleave));
  };

  const std::vector<RankResult> whole = run({});
  // Units are the embedding, attention and feed-forward of four layers, and the head: 10 in all. Some cuts fall within
  // a layer.
  ExpectIdentical(run({5}), whole);
  ExpectIdentical(run({4}), whole);
  ExpectIdentical(run({2, 5, 8}), whole);
  ExpectIdentical(run({1, 4, 9}), whole);
  // Several chunks on each of two ranks.
  ExpectIdentical(run({3, 5, 8}, /*interleave=*/2), whole);
  ExpectIdentical(run({1, 2, 4, 5, 9}, /*interleave=*/3), whole);

  const std::vector<StepReport>& steps = whole[0].steps;
  ASSERT_EQ(steps.size(), 20u);
  const auto clipped = std::count_if(steps.begin(), steps.end(), [](const StepReport& s) { return s.clip_factor < 1; });
  EXPECT_GE(clipped, 10) << "clipping was to matter";
  EXPECT_LT(steps.back().loss, steps.front().loss) << "the job was to learn";
}

INSTANTIATE_TEST_SUITE_P(PrecisionsAndReplicas, PipelineCut,
                         testing::Values(Case{Precision::kFp32, 1}, Case{Precision::kFp32, 4},
                                         Case{Precision::kBf16, 1}, Case{Precision::kBf16, 4}),
                         [](const testing::TestParamInfo<Case>& info) {
                           return std::string(info.param.precision == Precision::kFp32 ? "Fp32" : "Bf16") + "On" +
                                  std::to_string(info.param.replicas) + "Replicas";
                         });

TEST(PipelineCut, ChangesNoBitOfAnUntiedModel) {
  EngineConfig job = TinyJob();
  job.model.tied = false;
  job.training.steps = 5;
  const std::vector<RankResult> whole = RunJob(Cut(job, {}, 2));
  ExpectIdentical(RunJob(Cut(job, {3, 6}, 2)), whole);
  ExpectIdentical(RunJob(Cut(job, {2, 3, 6}, 2, /*interleave=*/2)), whole);
}

TEST(PipelineCut, InterleavedRanksTakeAsFewMicroBatchesAsThereAreStages) {
  EngineConfig job = TinyJob();
  job.training.steps = 5;
  const std::vector<RankResult> whole = RunJob(job);
  ExpectIdentical(RunJob(Cut(job, {2, 3, 4, 5, 7, 8, 9}, 1, /*interleave=*/2)), whole);
}

TEST(PipelineCut, ChangesNoBitOfAValidation) {
  EngineConfig job = TinyJob();
  job.training.steps = 2;
  job.validation = {.every_steps = 1, .windows = 7, .before_first_step = true};
  const SyntheticSource validation(job.layout.sequence_length, job.model.vocab);
  const auto run = [&](const std::vector<int64_t>& cuts, int64_t interleave) {
    return RunJob(Cut(job, cuts, 1, interleave), {.validation = &validation})[0].validations;
  };
  const std::vector<ValidationReport> whole = run({}, 1);
  ASSERT_EQ(whole.size(), 3u);
  for (const std::vector<ValidationReport>& cut : {run({5}, 1), run({3, 5, 8}, 2)}) {
    ASSERT_EQ(cut.size(), whole.size());
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ(cut[i].loss, whole[i].loss);
      EXPECT_EQ(cut[i].tokens, whole[i].tokens);
    }
  }
}

TEST(PipelineCut, WorksWithFewerMicroBatchesThanStages) {
  EngineConfig job = TinyJob();
  job.layout.accumulation_steps = 2;
  job.training.steps = 5;
  ExpectIdentical(RunJob(Cut(job, {2, 5, 8}, 1)), RunJob(job));
  ExpectIdentical(RunJob(Cut(job, {2, 5, 8}, 2)), RunJob(Cut(job, {}, 2)));
}

}  // namespace
}  // namespace muster
