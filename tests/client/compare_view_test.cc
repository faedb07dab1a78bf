#include "client/compare_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster {
namespace {

using testing::HasSubstr;

// A run whose loss falls by `rate` a step, validated every 10 steps.
Run MakeRun(const std::string& id, double rate, int64_t steps, double tokens_per_second) {
  Run run;
  run.job.set_id(id);
  run.job.mutable_spec()->set_name("tiny");
  run.job.mutable_resolved_spec()->mutable_training()->set_steps(steps);
  run.job.mutable_resolved_spec()->mutable_training()->mutable_optimizer()->mutable_adamw()->set_lr(rate);
  const auto add = [&](const char* name, int64_t every, double first, double slope) {
    v1::MetricSeries* series = run.metrics.add_series();
    series->set_name(name);
    for (int64_t step = every; step <= steps; step += every) {
      series->add_points()->set_step(step);
      series->mutable_points()->rbegin()->set_value(first + slope * static_cast<double>(step));
    }
  };
  add("muster_job_loss", 1, 5, -rate);
  add("muster_job_validation_loss", 10, 5, -rate);
  add("muster_job_tokens_per_second", 1, tokens_per_second, 0);
  return run;
}

TEST(CompareView, SaysWhatDiffersHowItWentAndWhichIsAhead) {
  const Comparison comparison = Compare(MakeRun("job-1", 0.01, 40, 1000), MakeRun("job-2", 0.02, 30, 2000), 12);
  ASSERT_EQ(comparison.differences.size(), 2u);
  EXPECT_EQ(comparison.differences[0].field, "training.optimizer.adamw.lr");
  EXPECT_EQ(comparison.differences[1].field, "training.steps");
  ASSERT_EQ(comparison.steps.size(), 3u) << "the validated steps of both";
  EXPECT_EQ(comparison.steps.back().step, 30);
  EXPECT_DOUBLE_EQ(comparison.steps.back().loss.second, 4.4);
  EXPECT_EQ(comparison.verdict,
            "job-2 tiny has the lower validation loss at step 30: 4.4000 (perplexity 81.45) against 4.7000 (109.95); "
            "job-2 tiny is faster, 2,000 against 1,000 tokens/s");
  const std::string text = CompareText(comparison);
  EXPECT_THAT(text, HasSubstr("training.steps"));
  EXPECT_THAT(text, HasSubstr(comparison.verdict));
  const nlohmann::json json = nlohmann::json::parse(CompareJson(comparison));
  EXPECT_EQ(json["steps"][2]["validation_loss"]["left"], 4.7);
  EXPECT_TRUE(json["steps"][2]["resident_bytes"]["left"].is_null()) << "it was not told";
}

TEST(CompareView, RunsOfOneSpecAreSaidToBeTheSame) {
  const Comparison comparison = Compare(MakeRun("job-1", 0.01, 20, 1000), MakeRun("job-2", 0.01, 20, 1001), 12);
  EXPECT_TRUE(comparison.differences.empty());
  EXPECT_THAT(CompareText(comparison), HasSubstr("were asked for the same"));
  EXPECT_EQ(comparison.verdict, "validation loss is the same at step 20: 4.8000 and 4.8000; both are as fast");
}

TEST(CompareView, WithoutACommonStepThereIsNoVerdict) {
  EXPECT_EQ(Compare(MakeRun("job-1", 0.01, 20, 1000), MakeRun("job-2", 0.01, 0, 1000), 12).verdict,
            "no step is known of both");
}

}  // namespace
}  // namespace muster
