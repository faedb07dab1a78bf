// What the gang supervisor does when an attempt ends to go back behind bad samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/job/rewind.h"
#include "tests/support/coordinator_harness.h"

namespace muster {
namespace {

using testing::HasSubstr;

// Every rank ends because the policy does not accept `step`, which used the samples up to `next_sample`.
void EndToRewind(CoordinatorHarness& harness, FakeAgent& agent, int64_t ranks, int64_t step, int64_t target) {
  for (int64_t rank = 0; rank < ranks; ++rank) {
    agent.End(rank, v1::EXIT_REWIND);
    v1::Rewind& rewind = *agent.Find(rank)->mutable_exit()->mutable_rewind();
    rewind.set_step(step);
    rewind.set_target_step(target);
    rewind.set_next_sample(step * 8);
    rewind.set_type("LOSS_SPIKE");
    rewind.set_reason("step " + std::to_string(step) + ": loss 9 is above 3");
  }
  harness.Settle();
}

TEST(GangRewindTest, ARewindGoesOnFromTheCheckpointBeforeItsTargetAndBehindTheBadSamples) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 2);
  const std::string id = harness.Submit(MakeSpec("tiny", 2));
  harness.Train();
  for (const int64_t step : {10, 20, 30}) harness.ReportCheckpoint(id, step);
  harness.ReportStep(id, 34);
  EndToRewind(harness, agent, 2, /*step=*/35, /*target=*/29);

  EXPECT_EQ(harness.Job(id).state(), v1::STARTING);
  EXPECT_EQ(harness.Job(id).attempt(), 2);
  EXPECT_EQ(harness.Job(id).restarts(), 0) << "free of charge";
  ASSERT_EQ(agent.desired.assignments_size(), 2);
  for (const v1::Assignment& assignment : agent.desired.assignments()) {
    EXPECT_EQ(assignment.resume_from(), id + "/attempt-1/step-20");
    EXPECT_EQ(assignment.next_sample(), 35 * 8);
  }
  const std::vector<v1::Event> events = harness.Events(id, "LOSS_SPIKE_REWIND");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].message(),
            "step 35: loss 9 is above 3; goes back to the checkpoint of step 20, without samples 160 to 279");

  // It crashes before a checkpoint of its own: still behind the bad samples.
  harness.Train();
  agent.End(1, v1::EXIT_CRASHED, 9);
  harness.Settle();
  EXPECT_EQ(harness.Job(id).attempt(), 3);
  EXPECT_EQ(agent.desired.assignments(0).resume_from(), id + "/attempt-1/step-20");
  EXPECT_EQ(agent.desired.assignments(0).next_sample(), 35 * 8);

  // With one of its own the checkpoint knows.
  harness.Train();
  harness.ReportCheckpoint(id, 30);
  agent.End(1, v1::EXIT_CRASHED, 9);
  harness.Settle();
  EXPECT_EQ(agent.desired.assignments(0).resume_from(), id + "/attempt-3/step-30");
  EXPECT_EQ(agent.desired.assignments(0).next_sample(), 0);
}

TEST(GangRewindTest, ARewindToBeforeTheFirstCheckpointBeginsAnewBehindTheBadSamples) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  harness.Train();
  harness.ReportCheckpoint(id, 10);
  EndToRewind(harness, agent, 1, /*step=*/12, /*target=*/0);
  EXPECT_EQ(harness.Job(id).attempt(), 2);
  EXPECT_EQ(agent.desired.assignments(0).resume_from(), "");
  EXPECT_EQ(agent.desired.assignments(0).next_sample(), 12 * 8);
}

TEST(GangRewindTest, ARewindBeyondTheCheckpointsThatAreKeptTakesTheOldest) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  harness.Train();
  for (const int64_t step : {200, 210}) harness.ReportCheckpoint(id, step);
  EndToRewind(harness, agent, 1, /*step=*/212, /*target=*/111);
  EXPECT_EQ(agent.desired.assignments(0).resume_from(), id + "/attempt-1/step-200");
}

TEST(GangRewindTest, RewindsAreBoundedAndTheJobSaysSo) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  v1::JobSpec spec = MakeSpec("tiny", 1);
  spec.mutable_policy()->set_max_rewinds(2);
  const std::string id = harness.Submit(spec);
  for (int64_t rewind = 0; rewind < 2; ++rewind) {
    harness.Train();
    EndToRewind(harness, agent, 1, 12 + rewind, 0);
    EXPECT_EQ(harness.Job(id).state(), v1::STARTING);
    EXPECT_EQ(agent.desired.assignments(0).next_sample(), (12 + rewind) * 8) << "each moves on";
  }
  harness.Train();
  EndToRewind(harness, agent, 1, 14, 0);
  EXPECT_EQ(harness.Job(id).state(), v1::FAILED);
  EXPECT_EQ(harness.Job(id).state_reason_code(), "REWINDS_SPENT");
  EXPECT_THAT(harness.Job(id).state_reason(), HasSubstr("policy.max_rewinds is 2"));
}

TEST(GangRewindTest, ARewindOfAJobThatIsPausedHappensWhenItIsResumed) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  harness.Train();
  for (const int64_t step : {10, 20}) harness.ReportCheckpoint(id, step);
  agent.obeys = false;  // it is in the middle of the bad step
  harness.Pause(id);
  harness.Settle();
  EndToRewind(harness, agent, 1, /*step=*/21, /*target=*/15);
  EXPECT_EQ(harness.Job(id).state(), v1::PAUSED);
  agent.obeys = true;
  harness.Resume(id);
  harness.Settle();
  ASSERT_EQ(agent.desired.assignments_size(), 1);
  EXPECT_EQ(agent.desired.assignments(0).resume_from(), id + "/attempt-1/step-10");
  EXPECT_EQ(agent.desired.assignments(0).next_sample(), 21 * 8);
}

}  // namespace
}  // namespace muster
