// What the gang supervisor does when workers, or the coordinator itself, go away and come back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/job/liveness.h"
#include "tests/support/coordinator_harness.h"

namespace muster {
namespace {

using testing::HasSubstr;

TEST(GangWorkersTest, AnUnreachableWorkerDoesNotHoldACancellationForEver) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  harness.Train();
  harness.Disconnect(agent);
  harness.Cancel(id);
  harness.Pass(absl::Seconds(30));
  EXPECT_EQ(harness.Job(id).state(), v1::CANCELLED);
  EXPECT_THAT(harness.Job(id).state_reason(), HasSubstr("not every rank is known to have ended"));
  // When it comes back it is told to end what still runs.
  ASSERT_TRUE(harness.Connect(agent).ok());
  harness.Settle();
  EXPECT_TRUE(agent.ranks.empty());
}

TEST(GangWorkersTest, ALostWorkerIsReplacedOnceTheRestOfTheGangIsDead) {
  CoordinatorHarness harness;
  FakeAgent& lost = harness.AddAgent("worker-0", 1);
  FakeAgent& left = harness.AddAgent("worker-1", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 2));
  harness.Train();
  FakeAgent& spare = harness.AddAgent("worker-2", 1);
  harness.Disconnect(lost);
  harness.Pass(absl::Seconds(5));
  EXPECT_EQ(harness.Job(id).state(), v1::RUNNING) << "its lease still holds";
  harness.Pass(absl::Seconds(10));
  const v1::Job job = harness.Job(id);
  EXPECT_EQ(job.attempt(), 2);
  EXPECT_EQ(spare.desired.assignments_size(), 1);
  EXPECT_EQ(left.desired.assignments_size(), 1);
  EXPECT_THAT(job.state_reason(), HasSubstr("worker-0 cannot be reached"));
  // The old rank is not wanted any more.
  ASSERT_TRUE(harness.Connect(lost).ok());
  harness.Settle();
  EXPECT_TRUE(lost.ranks.empty());
}

TEST(GangWorkersTest, ASilentWorkerIsToldOfOnceAndItsRanksAreNotShownAsTraining) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  harness.Train();
  harness.ReportStep(id, 1);
  const std::string reason = harness.Job(id).state_reason();
  harness.Disconnect(agent);
  harness.Pass(absl::Seconds(10));
  EXPECT_TRUE(harness.Events(id, "WORKER_LOST").empty()) << "its lease still holds";
  harness.Pass(absl::Seconds(30));
  const v1::Job silent = harness.Job(id);
  EXPECT_EQ(silent.state(), v1::RUNNING) << "it may well train";
  EXPECT_EQ(silent.state_reason_code(), "WORKER_LOST");
  EXPECT_THAT(silent.state_reason(), HasSubstr("worker-0 has been silent since"));
  EXPECT_EQ(silent.ranks(0).state(), "unreachable");
  EXPECT_EQ(silent.progress().tokens_per_second(), 0);
  const std::vector<v1::Event> lost = harness.Events(id, "WORKER_LOST");
  ASSERT_EQ(lost.size(), 1);
  EXPECT_EQ(lost[0].severity(), v1::WARNING);
  EXPECT_EQ(lost[0].worker(), "worker-0");
  EXPECT_EQ(lost[0].message(),
            "worker-0 has been silent for 11.0 s; its ranks end by themselves, and may start elsewhere, in 4 min 49 s");

  harness.Restart();
  harness.Pass(absl::Seconds(5));
  EXPECT_TRUE(harness.Events(id, "WORKER_BACK").empty()) << "nobody heard it yet";
  ASSERT_TRUE(harness.Connect(agent).ok());
  harness.Pass(absl::Seconds(2));
  const v1::Job back = harness.Job(id);
  EXPECT_EQ(back.state_reason(), reason);
  EXPECT_EQ(back.state_reason_code(), "TRAINING");
  EXPECT_EQ(back.ranks(0).state(), "training");
  EXPECT_EQ(back.attempt(), 1);
  const std::vector<v1::Event> returns = harness.Events(id, "WORKER_BACK");
  ASSERT_EQ(returns.size(), 1);
  EXPECT_EQ(returns[0].severity(), v1::INFO);
  EXPECT_EQ(returns[0].message(), "worker-0 is heard again");
}

TEST(GangWorkersTest, AGangThatMovesProvesThatItsUnreachableWorkerLives) {
  CoordinatorHarness harness;
  FakeAgent& silent = harness.AddAgent("worker-0", 1);
  harness.AddAgent("worker-1", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 2));
  harness.Train();
  harness.Disconnect(silent);
  for (int64_t step = 1; step <= 30; ++step) {
    harness.Pass(absl::Seconds(1));
    harness.ReportStep(id, step);
  }
  EXPECT_EQ(harness.Job(id).state(), v1::RUNNING);
  EXPECT_EQ(harness.Job(id).attempt(), 1);
  const std::vector<v1::Event> lost = harness.Events(id, "WORKER_LOST");
  ASSERT_EQ(lost.size(), 1);
  EXPECT_THAT(lost[0].message(), HasSubstr("the job goes on while its other ranks do steps"));
}

TEST(GangWorkersTest, WithoutAnyContactOnlyTheFenceFreesAJob) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  harness.Train();
  harness.Disconnect(agent);
  harness.Pass(absl::Seconds(299));
  EXPECT_EQ(harness.Job(id).state(), v1::RUNNING) << "it may well train";
  harness.Pass(absl::Seconds(3));
  EXPECT_EQ(harness.Job(id).state(), v1::QUEUED) << "nowhere to go";
  harness.AddAgent("worker-1", 1);
  harness.Settle();
  EXPECT_EQ(harness.Job(id).attempt(), 2);
}

TEST(GangWorkersTest, ARestartedCoordinatorAdoptsTheRanksThatTrain) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 2);
  const std::string id = harness.Submit(MakeSpec("tiny", 2));
  harness.Train();
  harness.ReportStep(id, 3);
  const v1::Job before = harness.Job(id);
  const std::vector<std::string> events = harness.EventTypes(id);
  harness.Restart();
  EXPECT_EQ(harness.Job(id).state(), v1::RUNNING);
  harness.Pass(absl::Seconds(5));
  ASSERT_TRUE(harness.Connect(agent).ok());
  harness.Pass(absl::Seconds(20));
  EXPECT_EQ(harness.Job(id).state(), v1::RUNNING);
  EXPECT_EQ(harness.Job(id).attempt(), 1);
  EXPECT_GT(harness.Job(id).revision(), before.revision());
  for (const auto& started : agent.starts) EXPECT_EQ(started.second, 1);
  ASSERT_GE(harness.EventTypes(id).size(), events.size());
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(harness.EventTypes(id)[i], events[i]);
  for (int64_t rank = 0; rank < 2; ++rank) agent.End(rank, v1::EXIT_COMPLETED);
  harness.Settle();
  EXPECT_EQ(harness.Job(id).state(), v1::COMPLETED);
}

TEST(GangWorkersTest, ARankThatEndedWhileTheCoordinatorWasAwayIsRecoveredFrom) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 2);
  const std::string id = harness.Submit(MakeSpec("tiny", 2));
  harness.Train();
  harness.Restart();
  agent.End(1, v1::EXIT_CRASHED, 9);
  ASSERT_TRUE(harness.Connect(agent).ok());
  harness.Settle();
  EXPECT_EQ(harness.Job(id).attempt(), 2);
}

TEST(GangWorkersTest, ANewAgentUnderAnOldNameMeansThatTheOldRanksAreDead) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 2);
  const std::string id = harness.Submit(MakeSpec("tiny", 2));
  harness.Train();
  harness.Disconnect(agent);
  FakeAgent& reborn = harness.AddAgent("worker-0", 2, "another agent");
  EXPECT_EQ(harness.Job(id).attempt(), 2);
  EXPECT_EQ(reborn.desired.assignments_size(), 2);
  EXPECT_THAT(harness.Job(id).state_reason(), HasSubstr("ended with the agent of worker-0"));
}

TEST(GangWorkersTest, ACordonedWorkerTakesNoNewRanks) {
  CoordinatorHarness harness;
  harness.AddAgent("worker-0", 1);
  harness.registry->SetCordon("worker-0", true, "new disk",
                              [](absl::StatusOr<v1::Worker> worker) { EXPECT_EQ(worker->state(), v1::CORDONED); });
  harness.Settle();
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  EXPECT_EQ(harness.Job(id).state(), v1::QUEUED);
  EXPECT_THAT(harness.Job(id).state_reason(), HasSubstr("worker-0 has 1 free but is cordoned: new disk"));
  harness.Restart();
  harness.registry->SetCordon("worker-0", false, "",
                              [](absl::StatusOr<v1::Worker> worker) { EXPECT_TRUE(worker.ok()); });
  ASSERT_TRUE(harness.Connect(*harness.agents.begin()->second).ok());
  harness.Settle();
  EXPECT_EQ(harness.Job(id).state(), v1::STARTING);
}

}  // namespace
}  // namespace muster
