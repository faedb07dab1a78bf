#include "worker/engine/trace_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"
#include "tests/support/range_device.h"

namespace muster {
namespace {

using testing::ElementsAre;
using Category = TraceSpan::Category;

// A step of ten milliseconds with a pass of four, of which a unit takes three.
void TakeStep(TraceRecorder& recorder, FakeClock& clock, int64_t step) {
  recorder.BeginStep(step);
  clock.Advance(absl::Milliseconds(5));
  {
    const TraceScope pass(recorder, Category::kPass, "forward", 2);
    clock.Advance(absl::Milliseconds(1));
    const TraceScope unit(recorder, Category::kUnit, "0.attention");
    clock.Advance(absl::Milliseconds(3));
  }
  clock.Advance(absl::Milliseconds(1));
}

TEST(TraceRecorder, RecordsTheStepsAskedForAndNoOthers) {
  FakeClock clock;
  RangeDevice device;
  TraceRecorder recorder(clock, device);
  TakeStep(recorder, clock, 7);
  EXPECT_FALSE(recorder.EndStep(/*last=*/false).has_value());
  recorder.Schedule(8, 2);
  recorder.Schedule(8, 5);  // it has something to do already
  TakeStep(recorder, clock, 8);
  EXPECT_FALSE(recorder.EndStep(/*last=*/false).has_value());
  TakeStep(recorder, clock, 9);
  const std::optional<TraceReport> report = recorder.EndStep(/*last=*/false);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->first_step, 8);
  EXPECT_EQ(report->steps, 2);
  EXPECT_EQ(report->spans.size(), 6u);
  TakeStep(recorder, clock, 10);
  EXPECT_FALSE(recorder.EndStep(/*last=*/false).has_value());
}

TEST(TraceRecorder, SpansSayWhatWhenAndOfWhichMicroBatch) {
  FakeClock clock;
  RangeDevice device;
  TraceRecorder recorder(clock, device);
  recorder.Schedule(1, 1);
  const absl::Duration begin = clock.SinceBoot();
  TakeStep(recorder, clock, 1);
  const std::optional<TraceReport> report = recorder.EndStep(/*last=*/false);
  ASSERT_TRUE(report.has_value());
  ASSERT_EQ(report->spans.size(), 3u);
  const TraceSpan& unit = report->spans[0];
  EXPECT_EQ(unit.name, "0.attention");
  EXPECT_EQ(unit.category, Category::kUnit);
  EXPECT_EQ(unit.end - unit.begin, absl::Milliseconds(3));
  const TraceSpan& pass = report->spans[1];
  EXPECT_EQ(pass.name, "forward");
  EXPECT_EQ(pass.micro_batch, 2);
  EXPECT_EQ(pass.begin, begin + absl::Milliseconds(5));
  EXPECT_EQ(pass.end, begin + absl::Milliseconds(9));
  const TraceSpan& step = report->spans[2];
  EXPECT_EQ(step.category, Category::kStep);
  EXPECT_EQ(step.begin, begin);
  EXPECT_EQ(step.end, begin + absl::Milliseconds(10));
  EXPECT_EQ(absl::UnixEpoch() + report->wall_offset + clock.SinceBoot(), clock.Now());
}

TEST(TraceRecorder, ATimelineWithoutRoomIsCutShortAndSaysSo) {
  FakeClock clock;
  RangeDevice device;
  TraceRecorder recorder(clock, device, {.most_spans = 2});
  recorder.Schedule(1, 1);
  TakeStep(recorder, clock, 1);
  const std::optional<TraceReport> report = recorder.EndStep(/*last=*/false);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->spans.size(), 2u);
  EXPECT_EQ(report->dropped_spans, 1);
}

TEST(TraceRecorder, AProfilerSeesTheSameRangesWhetherThisRecordsOrNot) {
  FakeClock clock;
  RangeDevice device;
  TraceRecorder recorder(clock, device);
  TakeStep(recorder, clock, 1);
  EXPECT_FALSE(recorder.EndStep(/*last=*/false).has_value());
  EXPECT_THAT(device.ranges, ElementsAre(">step", ">>forward", ">>>0.attention"));
  EXPECT_EQ(device.depth, 0u);
}

}  // namespace
}  // namespace muster
