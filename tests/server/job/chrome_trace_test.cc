#include "server/job/chrome_trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster {
namespace {

constexpr int64_t kOrigin = 1'767'225'600'000'000'000;

TEST(ChromeTrace, ThePartsAreOneFileWithExactTimesAndNamedRanks) {
  v1::Job job;
  job.set_id("job-1");
  job.mutable_resolved_spec()->mutable_parallelism()->set_data(2);
  job.mutable_resolved_spec()->mutable_parallelism()->set_pipeline(2);
  for (int64_t rank = 0; rank < 4; ++rank) {
    job.add_placements()->set_rank(rank);
    job.mutable_placements()->rbegin()->set_worker("worker-0");
  }
  v1::TraceReport report;
  v1::TraceSpan* span = report.add_spans();
  span->set_name("forward");
  span->set_category("pass");
  span->set_begin_nanos(kOrigin + 1'234'567);
  span->set_duration_nanos(89);
  span->set_step(5);
  span->set_micro_batch(2);
  const std::string text = ChromeTraceHead(job, kOrigin) + ChromeTraceEvents(3, report, kOrigin) +
                           ChromeTraceEvents(1, {}, kOrigin) + ChromeTraceTail();
  const nlohmann::json trace = nlohmann::json::parse(text);
  const nlohmann::json& events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 3u * 4 + 1);
  EXPECT_EQ(events[9]["args"]["name"], "rank 3: tensor 0, data 1, pipeline 1 on worker-0");
  const nlohmann::json& pass = events.back();
  EXPECT_EQ(pass["ph"], "X");
  EXPECT_EQ(pass["pid"], 3);
  EXPECT_EQ(pass["ts"], 1234.567);
  EXPECT_EQ(pass["dur"], 0.089);
  EXPECT_EQ(pass["args"]["micro_batch"], 2);
}

TEST(ChromeTrace, ASpanBeforeTheOriginHasANegativeTime) {
  v1::TraceReport report;
  report.add_spans()->set_begin_nanos(kOrigin - 1'500);
  EXPECT_NE(ChromeTraceEvents(0, report, kOrigin).find("\"ts\":-1.500,"), std::string::npos);
}

}  // namespace
}  // namespace muster
