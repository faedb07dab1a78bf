#include "common/plan/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

Layout Cut(int64_t pipeline, int64_t interleave, int64_t micro_batches) {
  Layout layout;
  layout.pipeline = pipeline;
  layout.interleave = interleave;
  layout.accumulation_steps = micro_batches;
  return layout;
}

// "F0 F1 B0 ", with the chunk as a letter where there are several: "F0a ".
std::string Text(const Layout& layout, const std::vector<PassAction>& actions) {
  std::string text;
  for (const PassAction& action : actions) {
    absl::StrAppend(&text, action.forward() ? "F" : "B", action.micro_batch);
    if (layout.interleave > 1) text += static_cast<char>('a' + action.chunk);
    text += ' ';
  }
  return text;
}

std::string Text(const Layout& layout, int64_t rank) { return Text(layout, StepPasses(layout, rank)); }

TEST(Schedule, FirstStageOfThreeWarmsUpThenAlternates) {
  EXPECT_EQ(Text(Cut(3, 1, 5), 0), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4 ");
}

TEST(Schedule, LastStageBacksEachMicroBatchAtOnce) { EXPECT_EQ(Text(Cut(3, 1, 3), 2), "F0 B0 F1 B1 F2 B2 "); }

// Figure 4 (bottom) of Narayanan et al. has four ranks; this is its rule for two.
TEST(Schedule, InterleavedChunksTakeTurnsInGroupsOfThePipelinesSize) {
  const Layout layout = Cut(2, 2, 4);
  EXPECT_EQ(Text(layout, 0), "F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a B2b B3b B2a B3a ");
  EXPECT_EQ(Text(layout, 1), "F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a ");
}

TEST(Schedule, EvaluationGoesThroughTheChunksAsTrainingDoes) {
  const Layout layout = Cut(2, 2, 4);
  EXPECT_EQ(Text(layout, EvaluationPasses(layout, 3)), "F0a F1a F0b F1b F2a F2b ");
  EXPECT_TRUE(EvaluationPasses(layout, 0).empty());
}

class ScheduleProperties : public testing::TestWithParam<int64_t> {
 protected:
  // Calls with every rank of pipelines with GetParam() chunks a rank.
  template <typename Check>
  void ForEachRank(const Check& check) {
    for (int64_t pipeline = 1; pipeline <= 5; ++pipeline) {
      const int64_t groups = GetParam() == 1 ? 1 : pipeline;
      for (int64_t micro_batches = groups; micro_batches <= 3 * pipeline + 1; micro_batches += groups) {
        const Layout layout = Cut(pipeline, GetParam(), micro_batches);
        SCOPED_TRACE(absl::StrCat("pipeline ", pipeline, ", ", micro_batches, " micro-batches"));
        for (int64_t rank = 0; rank < pipeline; ++rank) check(layout, rank);
      }
    }
  }
};

TEST_P(ScheduleProperties, EveryChunkPassesEachMicroBatchOnceAndInOrder) {
  ForEachRank([](const Layout& layout, int64_t rank) {
    std::vector<int64_t> forwards(static_cast<size_t>(layout.interleave), 0);
    std::vector<int64_t> backwards = forwards;
    for (const PassAction& action : StepPasses(layout, rank)) {
      const size_t chunk = static_cast<size_t>(action.chunk);
      EXPECT_EQ(action.micro_batch, (action.forward() ? forwards : backwards)[chunk]++);
      EXPECT_LE(backwards[chunk], forwards[chunk]);
    }
    for (const int64_t count : forwards) EXPECT_EQ(count, layout.accumulation_steps);
    for (const int64_t count : backwards) EXPECT_EQ(count, layout.accumulation_steps);
  });
}

TEST_P(ScheduleProperties, InFlightIsTheMostThatAChunkHolds) {
  ForEachRank([](const Layout& layout, int64_t rank) {
    for (int64_t chunk = 0; chunk < layout.interleave; ++chunk) {
      int64_t held = 0;
      int64_t most = 0;
      for (const PassAction& action : StepPasses(layout, rank)) {
        if (action.chunk == chunk) held += action.forward() ? 1 : -1;
        most = std::max(most, held);
      }
      EXPECT_EQ(InFlightMicroBatches(layout, rank, chunk), most);
    }
  });
}

TEST_P(ScheduleProperties, InFlightOfAVeryLongStepIsThatOfAShortOne) {
  for (int64_t pipeline = 1; pipeline <= 8; ++pipeline) {
    for (int64_t rank = 0; rank < pipeline; ++rank) {
      for (int64_t chunk = 0; chunk < GetParam(); ++chunk) {
        EXPECT_EQ(InFlightMicroBatches(Cut(pipeline, GetParam(), 1'000'000'000 / pipeline * pipeline), rank, chunk),
                  InFlightMicroBatches(Cut(pipeline, GetParam(), 10 * pipeline), rank, chunk));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Chunks, ScheduleProperties, testing::Values(1, 2, 3, 4));

TEST(Schedule, EarlierStagesHoldMoreMicroBatches) {
  EXPECT_EQ(InFlightMicroBatches(Cut(4, 1, 8), 0, 0), 4);
  EXPECT_EQ(InFlightMicroBatches(Cut(4, 1, 8), 3, 0), 1);
  EXPECT_EQ(InFlightMicroBatches(Cut(4, 1, 2), 0, 0), 2);
  EXPECT_EQ(InFlightMicroBatches(Cut(4, 1, 2), 2, 0), 2);
  EXPECT_EQ(InFlightMicroBatches(Cut(4, 1, 2), 3, 0), 1);
}

}  // namespace
}  // namespace muster
