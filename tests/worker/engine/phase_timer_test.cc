#include "worker/engine/phase_timer.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>

#include "tests/support/fake_clock.h"
#include "tests/support/range_device.h"

namespace muster {
namespace {

double Of(const PhaseSeconds& seconds, Phase phase) { return seconds[static_cast<size_t>(phase)]; }

TEST(PhaseTimer, AnInnerPhasePausesTheOneAroundIt) {
  FakeClock clock;
  RangeDevice device;
  TraceRecorder recorder(clock, device);
  PhaseTimer timer(clock, recorder);
  {
    PhaseScope forward(timer, Phase::kForward);
    clock.Advance(absl::Seconds(1));
    {
      PhaseScope bubble(timer, Phase::kBubble);
      clock.Advance(absl::Seconds(10));
    }
    clock.Advance(absl::Seconds(2));
  }
  clock.Advance(absl::Seconds(5));
  const PhaseSeconds seconds = timer.Seconds();
  EXPECT_EQ(Of(seconds, Phase::kForward), 3);
  EXPECT_EQ(Of(seconds, Phase::kBubble), 10);
  EXPECT_EQ(Of(seconds, Phase::kOther), 5);
  EXPECT_EQ(std::accumulate(seconds.begin(), seconds.end(), 0.0), 18);
}

TEST(PhaseTimer, CountsTheOpenPhaseUpToNow) {
  FakeClock clock;
  RangeDevice device;
  TraceRecorder recorder(clock, device);
  PhaseTimer timer(clock, recorder);
  PhaseScope optimizer(timer, Phase::kOptimizer);
  clock.Advance(absl::Seconds(4));
  EXPECT_EQ(Of(timer.Seconds(), Phase::kOptimizer), 4);
}

TEST(PhaseTimer, RestartForgetsWhatWas) {
  FakeClock clock;
  RangeDevice device;
  TraceRecorder recorder(clock, device);
  PhaseTimer timer(clock, recorder);
  clock.Advance(absl::Seconds(7));
  timer.Restart();
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(Of(timer.Seconds(), Phase::kOther), 1);
}

TEST(PhaseTimer, EveryPhaseHasAName) {
  std::set<std::string> names;
  for (int i = 0; i < kPhases; ++i) names.insert(PhaseName(static_cast<Phase>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kPhases));
  EXPECT_EQ(names.count("unknown"), 0u);
}

TEST(PhaseTimer, APauseBelongsToNoPhase) {
  FakeClock clock;
  RangeDevice device;
  TraceRecorder recorder(clock, device);
  PhaseTimer timer(clock, recorder);
  timer.Restart();
  clock.Advance(absl::Seconds(1));
  {
    PhasePause pause(timer);
    PhaseScope forward(timer, Phase::kForward);
    clock.Advance(absl::Seconds(10));
  }
  clock.Advance(absl::Seconds(2));
  EXPECT_EQ(Of(timer.Seconds(), Phase::kForward), 0);
  EXPECT_EQ(Of(timer.Seconds(), Phase::kOther), 3);
}

TEST(PhaseTimer, AScopeIsASpanOfTheTimeline) {
  FakeClock clock;
  RangeDevice device;
  TraceRecorder recorder(clock, device);
  PhaseTimer timer(clock, recorder);
  recorder.Schedule(1, 1);
  recorder.BeginStep(1);
  {
    PhaseScope forward(timer, Phase::kForward, /*micro_batch=*/3);
    PhaseScope bubble(timer, Phase::kBubble);
    clock.Advance(absl::Seconds(1));
  }
  const std::optional<TraceReport> trace = recorder.EndStep(/*last=*/false);
  ASSERT_TRUE(trace.has_value());
  ASSERT_EQ(trace->spans.size(), 3u);
  EXPECT_EQ(trace->spans[0].name, "bubble");
  EXPECT_EQ(trace->spans[0].category, TraceSpan::Category::kPhase);
  EXPECT_EQ(trace->spans[1].name, "forward");
  EXPECT_EQ(trace->spans[1].category, TraceSpan::Category::kPass);
  EXPECT_EQ(trace->spans[1].micro_batch, 3);
  EXPECT_EQ(trace->spans[1].end - trace->spans[1].begin, absl::Seconds(1));
}

}  // namespace
}  // namespace muster
