// Training that waits for its data says so, and says what to change. Time is a fake clock's, which reading a sample and
// computing a step advance: nothing sleeps. With one step in memory all reading happens while the trainer waits, but
// for the first step's, which begins before training does.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"
#include "tests/worker/engine/training_harness.h"
#include "worker/data/data_wait_advice.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

class TimedSource : public SampleSource {
 public:
  TimedSource(const EngineConfig& job, FakeClock& clock, absl::Duration takes)
      : samples_(job.layout.sequence_length, job.model.vocab), clock_(clock), takes_(takes) {}
  int64_t sequence_length() const override { return samples_.sequence_length(); }
  absl::Status Sample(int64_t index, const SampleRows& row) const override {
    clock_.Advance(takes_);
    return samples_.Sample(index, row);
  }

 private:
  const SyntheticSource samples_;
  FakeClock& clock_;
  const absl::Duration takes_;
};

// Two replicas train for one window of the advisor; each step computes for 200 ms.
std::vector<RankResult> Train(absl::Duration sample_takes) {
  EngineConfig job = Cut(TinyJob(), {}, 2);
  job.layout.prefetch_steps = 1;
  job.training.steps = DataWaitAdvisor::kWindowSteps;
  FakeClock clock;
  const TimedSource source(job, clock, sample_takes);
  const auto compute = [&clock](int64_t rank, int64_t /*steps_done*/) {
    // Not on rank 1 as well: rank 0 may wait for its next data by then.
    if (rank == 0) clock.Advance(absl::Milliseconds(200));
    return absl::OkStatus();
  };
  return RunJob(job, {.train = &source, .clock = &clock, .before_optimizer_step = compute});
}

TEST(TrainerDataWait, AWindowOfStepsThatWaitedForDataIsToldOnceForAllRanksWithTheFieldToRaise) {
  const std::vector<RankResult> ranks = Train(absl::Milliseconds(100));
  for (const RankResult& rank : ranks) ASSERT_TRUE(rank.status.ok()) << rank.status.ToString();
  ASSERT_EQ(ranks[0].events.size(), 1u);
  const EngineEvent& event = ranks[0].events[0];
  EXPECT_EQ(event.type, "DATA_WAIT");
  EXPECT_THAT(event.message, HasSubstr("raise data.loader_threads from 1 to 2"));
  EXPECT_EQ(event.details.at("step"), "50");
  EXPECT_TRUE(ranks[1].events.empty());
}

TEST(TrainerDataWait, DataThatComesInTimeIsNotSpokenOf) {
  for (const RankResult& rank : Train(absl::Microseconds(100))) {
    ASSERT_TRUE(rank.status.ok()) << rank.status.ToString();
    EXPECT_TRUE(rank.events.empty());
  }
}

}  // namespace
}  // namespace muster
