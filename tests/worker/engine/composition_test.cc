// Whatever product of parallelism, recomputation and model a job asks for, it trains as on one rank, and goes on from a
// checkpoint of any other.
//
// Cases are drawn from a seed that is printed. `composition_test --seed=S --case=I` replays one of them, `--cases=N`
// draws another number.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/plan/job_plan.h"
#include "tests/support/gloo_harness.h"
#include "tests/support/temporary_directory.h"
#include "tests/worker/engine/layout_draw.h"
#include "tests/worker/engine/training_harness.h"

namespace muster {
namespace {

constexpr double kStepTolerance = 1e-5;  // relative, of loss and gradient norm at each step
constexpr int64_t kResumedCases = 20;
constexpr double kWeightTolerance = 1e-4;  // of a logical parameter, by norm

// Set by main.
struct Options {
  uint64_t seed = 1;
  int64_t cases = 64;
  int64_t only_case = -1;  // all
} options;

bool AllEndedWell(const std::vector<RankResult>& results) {
  bool well = true;
  for (size_t rank = 0; rank < results.size(); ++rank) {
    EXPECT_TRUE(results[rank].status.ok()) << "rank " << rank << ": " << results[rank].status.ToString();
    well = well && results[rank].status.ok();
  }
  return well;
}

// The largest parts of the tolerances that were used up, for whoever chooses the next ones.
double largest_step_error = 0;
double largest_weight_error = 0;

void ExpectRelative(double value, double expected, const std::string& what) {
  const double error = std::abs(value - expected) / std::abs(expected);
  EXPECT_LE(error, kStepTolerance) << what << ": " << value << " for " << expected;
  largest_step_error = std::max(largest_step_error, error / kStepTolerance);
}

// The steps of `results`, which may be the last ones of those expected, and the weights at the end.
void ExpectClose(const std::vector<RankResult>& results, const std::vector<RankResult>& expected) {
  const std::vector<StepReport>& steps = results[0].steps;
  ASSERT_LE(steps.size(), expected[0].steps.size());
  const size_t before = expected[0].steps.size() - steps.size();
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepReport& wanted = expected[0].steps[before + i];
    ASSERT_EQ(steps[i].step, wanted.step);
    ExpectRelative(steps[i].loss, wanted.loss, absl::StrCat("loss of step ", wanted.step));
    ExpectRelative(steps[i].gradient_norm, wanted.gradient_norm, absl::StrCat("norm of step ", wanted.step));
    EXPECT_EQ(steps[i].tokens, wanted.tokens);
  }
  const WeightMap weights = MergedWeights(results);
  for (const auto& [name, values] : MergedWeights(expected)) {
    ASSERT_EQ(weights.count(name), 1u) << name;
    const double error = RelativeError(weights.at(name), values);
    EXPECT_LE(error, kWeightTolerance) << name;
    largest_weight_error = std::max(largest_weight_error, error / kWeightTolerance);
  }
}

// The planner knows what each rank allocates, to the byte.
void ExpectPlannedMemory(const EngineConfig& job, const std::vector<RankResult>& results) {
  JobPlanRequest request;
  request.job = {
      .shape = job.model, .layout = job.layout, .ranks = job.layout.ranks(), .global_batch = job.layout.global_batch()};
  request.stages = job.stages;
  const JobPlan plan = BuildJobPlan(request);
  ASSERT_EQ(plan.ranks.size(), results.size());
  for (size_t rank = 0; rank < results.size(); ++rank) {
    const MemoryReport& memory = results[rank].steps.back().memory;
    EXPECT_EQ(memory.arena_bytes, plan.ranks[rank].arena_bytes) << "rank " << rank;
    EXPECT_EQ(memory.used_bytes, plan.ranks[rank].memory) << "rank " << rank;
  }
}

void CheckCase(int64_t index) {
  Draw draw(options.seed, static_cast<uint64_t>(index));
  const EngineConfig job = DrawJob(draw);
  SCOPED_TRACE(absl::StrCat("replay: composition_test --seed=", options.seed, " --case=", index, "\n", Describe(job)));
  const std::vector<RankResult> results = RunJob(job);
  if (!AllEndedWell(results)) return;
  ExpectPlannedMemory(job, results);
  if (job.layout.pipeline > 1) {
    const std::vector<RankResult> whole = RunJob(WithoutPipeline(job));
    if (AllEndedWell(whole)) ExpectIdentical(results, whole);
  }
  if (job.layout.precision != Precision::kFp32) return;
  const std::vector<RankResult> expected = RunJob(OnOneRank(job));
  if (AllEndedWell(expected)) ExpectClose(results, expected);
}

TEST(Composition, TrainsAsOnOneRank) {
  for (int64_t index = 0; index < options.cases; ++index) {
    if (options.only_case < 0 || options.only_case == index) CheckCase(index);
  }
  std::cout << absl::StrCat("largest error, of the tolerance: ", largest_step_error, " of losses and norms, ",
                            largest_weight_error, " of weights\n");
}

// A generator that seldom draws a feature would prove nothing about it.
TEST(Composition, DrawsEveryFeatureOften) {
  if (options.only_case >= 0) return;  // one case was asked for
  std::map<std::string, int64_t> drawn;
  for (int64_t index = 0; index < options.cases; ++index) {
    Draw draw(options.seed, static_cast<uint64_t>(index));
    for (const auto& [feature, has] : FeaturesOf(DrawJob(draw))) drawn[feature] += has ? 1 : 0;
  }
  for (const auto& [feature, count] : drawn) {
    std::cout << absl::StrCat("drawn: ", feature, " in ", count, " of ", options.cases, "\n");
    EXPECT_GE(count, std::max<int64_t>(1, options.cases / 30)) << feature;
  }
  for (const auto& [field, count] : RefusedDraws()) {
    std::cout << absl::StrCat("refused by the checks: ", field, ", ", count, " draws\n");
  }
}

// The same bytes go another way.
TEST(Composition, IsTheSameOverGloo) {
  if (options.only_case >= 0) return;
  int64_t left = 4;
  for (int64_t index = 0; left > 0; ++index) {
    Draw draw(options.seed, static_cast<uint64_t>(index));
    const EngineConfig job = DrawJob(draw);
    if (job.layout.ranks() < 4) continue;
    --left;
    SCOPED_TRACE(absl::StrCat("seed ", options.seed, ", case ", index, " over Gloo\n", Describe(job)));
    const std::vector<RankResult> results =
        RunJob(job, {.run_ranks = [](int size, const RankBody& body) { return RunGlooRanks(size, body); }});
    if (AllEndedWell(results)) ExpectIdentical(results, RunJob(job));
  }
}

// Four steps at one layout, against two there and two at another from the checkpoint between them.
void CheckResume(int64_t index) {
  Draw draw(options.seed, static_cast<uint64_t>(index));
  EngineConfig job = DrawJob(draw);
  const bool only_pipeline = job.layout.precision != Precision::kFp32 || draw.OneIn(4);
  EngineConfig other = only_pipeline ? WithoutPipeline(job) : DrawOtherLayout(draw, job);
  SCOPED_TRACE(absl::StrCat("replay: composition_test --seed=", options.seed, " --case=", index, "\n", Describe(job),
                            "\nthen ", Describe(other)));
  const TemporaryDirectory directory;
  job.training.steps = other.training.steps = 4;
  job.checkpoint.directory = directory.path();
  job.checkpoint.every_steps = 2;
  const std::vector<RankResult> whole = RunJob(job);
  if (!AllEndedWell(whole)) return;
  ASSERT_EQ(whole[0].checkpoints.size(), 2u);
  other.checkpoint.resume_from = whole[0].checkpoints[0].directory;
  const std::vector<RankResult> resumed = RunJob(other);
  if (!AllEndedWell(resumed)) return;
  ASSERT_EQ(resumed[0].steps.size(), 2u);
  ExpectClose(resumed, whole);
  if (!only_pipeline) return;
  EXPECT_EQ(resumed[0].steps.back().loss, whole[0].steps.back().loss);
  EXPECT_EQ(MergedWeights(resumed), MergedWeights(whole));
}

TEST(Composition, GoesOnAtAnyOtherLayout) {
  for (int64_t index = 0; index < kResumedCases; ++index) {
    if (options.only_case < 0 || options.only_case == index) CheckResume(index);
  }
}

bool ReadOption(absl::string_view argument, absl::string_view name, int64_t* value) {
  return absl::ConsumePrefix(&argument, absl::StrCat("--", name, "=")) && absl::SimpleAtoi(argument, value);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  muster::Options& options = muster::options;
  int64_t seed = static_cast<int64_t>(options.seed);
  for (int i = 1; i < argc; ++i) {
    const bool read = muster::ReadOption(argv[i], "seed", &seed) ||
                      muster::ReadOption(argv[i], "cases", &options.cases) ||
                      muster::ReadOption(argv[i], "case", &options.only_case);
    if (!read) {
      std::cerr << argv[i] << " is not --seed=S, --case=I or --cases=N\n";
      return 2;
    }
  }
  options.seed = static_cast<uint64_t>(seed);
  options.cases = std::max(options.cases, options.only_case + 1);
  std::cout << "seed " << options.seed << ", " << options.cases << " cases\n";
  return RUN_ALL_TESTS();
}
