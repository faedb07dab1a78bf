#include "server/job/gang_supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/coordinator_harness.h"

namespace muster {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::vector<v1::Event> EventsOf(CoordinatorHarness& harness, const std::string& job, const std::string& type) {
  v1::ListEventsRequest request;
  request.set_job(job);
  request.add_types(type);
  const absl::StatusOr<v1::ListEventsResponse> response = harness.manager->ListEvents(request);
  EXPECT_TRUE(response.ok()) << response.status();
  return {response->events().begin(), response->events().end()};
}

TEST(GangSupervisorTest, AJobRunsFromSubmissionToCompletion) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 4);
  const std::string id = harness.Submit(MakeSpec("tiny", 4));
  EXPECT_EQ(harness.Job(id).state(), v1::STARTING);
  EXPECT_EQ(harness.Job(id).attempt(), 1);
  ASSERT_EQ(agent.desired.assignments_size(), 4);
  EXPECT_EQ(agent.desired.assignments(3).device(), 3);
  EXPECT_EQ(agent.desired.assignments(0).cuts_size(), 2);

  harness.Train();
  EXPECT_EQ(harness.Job(id).state(), v1::RUNNING);
  harness.ReportStep(id, 1);
  EXPECT_EQ(harness.Job(id).progress().step(), 1);
  EXPECT_EQ(harness.Job(id).progress().tokens(), 64);

  for (int64_t rank = 0; rank < 4; ++rank) agent.End(rank, v1::EXIT_COMPLETED);
  harness.Settle();
  EXPECT_EQ(harness.Job(id).state(), v1::COMPLETED);
  EXPECT_TRUE(agent.ranks.empty()) << "every end is acknowledged";
  EXPECT_EQ(agent.desired.assignments_size(), 0);
  for (const auto& started : agent.starts) EXPECT_EQ(started.second, 1) << "no rank is started twice";
}

TEST(GangSupervisorTest, NothingIsCommandedBeforeItIsStored) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 2);
  v1::SubmitJobRequest request;
  *request.mutable_spec() = MakeSpec("tiny", 2);
  bool replied = false;
  harness.manager->Submit(request, [&replied](absl::StatusOr<v1::Job>) { replied = true; });
  harness.supervisor->Schedule();
  EXPECT_FALSE(replied);
  EXPECT_EQ(agent.desired.assignments_size(), 0);
  EXPECT_EQ(harness.manager->Get("job-1").status().code(), absl::StatusCode::kNotFound);
  harness.store->CommitPending();
  EXPECT_TRUE(replied);
  EXPECT_EQ(agent.desired.assignments_size(), 2);
}

TEST(GangSupervisorTest, AKilledRankTakesItsGangAlongAndTheNextAttemptResumesAtTheCheckpoint) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 4);
  const std::string id = harness.Submit(MakeSpec("tiny", 4));
  harness.Train();
  harness.ReportStep(id, 10);
  harness.ReportCheckpoint(id, 10);
  harness.ReportStep(id, 12);

  agent.End(2, v1::EXIT_CRASHED, 9);
  harness.Settle();
  const v1::Job job = harness.Job(id);
  EXPECT_EQ(job.state(), v1::STARTING);
  EXPECT_EQ(job.attempt(), 2);
  EXPECT_EQ(job.restarts(), 1);
  EXPECT_EQ(job.progress().step(), 10);
  EXPECT_THAT(job.state_reason(), HasSubstr("rank 2 was killed by signal 9 on worker-0; attempt 1 -> 2"));
  ASSERT_EQ(agent.desired.assignments_size(), 4);
  EXPECT_EQ(agent.desired.assignments(0).attempt(), 2);
  EXPECT_EQ(agent.desired.assignments(0).resume_from(), id + "/attempt-1/step-10");

  harness.clock.Advance(absl::Milliseconds(1400));
  harness.ReportStep(id, 11);
  EXPECT_EQ(harness.Job(id).state(), v1::RUNNING);
  EXPECT_EQ(harness.Job(id).last_recovery().seconds(), 1);
  EXPECT_EQ(harness.Job(id).last_recovery().nanos(), 400000000);
  EXPECT_EQ(harness.Job(id).progress().tokens(), 12 * 64) << "step 11 was counted in attempt 1";
  EXPECT_THAT(harness.EventTypes(id), Contains("TRAINING_AGAIN"));
}

TEST(GangSupervisorTest, ARecoveryLastsFromTheLastStepBeforeToTheFirstStepAfter) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  harness.Train();
  harness.ReportStep(id, 80);
  harness.ReportCheckpoint(id, 80);
  harness.ReportStep(id, 93);
  harness.Disconnect(agent);
  harness.Pass(absl::Seconds(311));  // seen as lost after 300
  ASSERT_EQ(harness.Job(id).state(), v1::QUEUED);
  harness.AddAgent("worker-1", 1);
  harness.clock.Advance(absl::Seconds(1));
  harness.ReportStep(id, 81);
  ASSERT_EQ(harness.Job(id).attempt(), 2);
  EXPECT_EQ(harness.Job(id).last_recovery().seconds(), 312);
  const std::vector<v1::Event> again = EventsOf(harness, id, "TRAINING_AGAIN");
  ASSERT_EQ(again.size(), 1);
  EXPECT_EQ(again[0].message(),
            "training again after 5 min 12 s at step 81; step 93 had been reached, so 13 steps are done again");
}

TEST(GangSupervisorTest, ARecoveryFromAnAttemptThatDidNoStepLastsFromItsStart) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  harness.clock.Advance(absl::Seconds(3));
  agent.End(0, v1::EXIT_CRASHED, 11);
  harness.Settle();
  harness.clock.Advance(absl::Milliseconds(400));
  harness.ReportStep(id, 1);
  const std::vector<v1::Event> again = EventsOf(harness, id, "TRAINING_AGAIN");
  ASSERT_EQ(again.size(), 1);
  EXPECT_EQ(again[0].message(), "training again after 3.40 s at step 1");
}

TEST(GangSupervisorTest, NoNewAttemptStartsWhileAReachableRankLives) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 2);
  const std::string id = harness.Submit(MakeSpec("tiny", 2));
  harness.Train();
  agent.obeys = false;
  agent.End(0, v1::EXIT_CRASHED, 11);
  harness.Settle();
  EXPECT_EQ(harness.Job(id).state(), v1::RECOVERING);
  EXPECT_TRUE(agent.Wants(1, v1::KILL));
  harness.Pass(absl::Seconds(60));
  EXPECT_EQ(harness.Job(id).state(), v1::RECOVERING);
  agent.obeys = true;
  agent.End(1, v1::EXIT_KILLED, 9);
  harness.Settle();
  EXPECT_EQ(harness.Job(id).attempt(), 2);
}

TEST(GangSupervisorTest, AUserErrorIsNotTriedAgainWhoeverReportsFirst) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 2);
  const std::string id = harness.Submit(MakeSpec("tiny", 2));
  harness.Train();
  agent.obeys = false;
  agent.End(0, v1::EXIT_INFRASTRUCTURE, 0, "lost rank 1");
  harness.Settle();
  EXPECT_EQ(harness.Job(id).state(), v1::RECOVERING);
  agent.End(1, v1::EXIT_USER_ERROR, 0, "data/train.bin: no such file");
  harness.Settle();
  EXPECT_EQ(harness.Job(id).state(), v1::FAILED);
  EXPECT_EQ(harness.Job(id).state_reason_code(), "USER_ERROR");
  EXPECT_THAT(harness.Job(id).state_reason(), HasSubstr("data/train.bin: no such file"));
  EXPECT_EQ(harness.Job(id).attempt(), 1);
}

TEST(GangSupervisorTest, ThreeAttemptsWithoutProgressEndAJob) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  for (int attempt = 1; attempt <= 3; ++attempt) {
    ASSERT_EQ(harness.Job(id).attempt(), attempt);
    agent.End(0, v1::EXIT_CRASHED, 11);
    harness.Settle();
  }
  EXPECT_EQ(harness.Job(id).state(), v1::FAILED);
  EXPECT_EQ(harness.Job(id).state_reason_code(), "NO_PROGRESS");
}

TEST(GangSupervisorTest, CancellingKillsTheRanksAndFreesTheDevices) {
  CoordinatorHarness harness;
  harness.AddAgent("worker-0", 2);
  const std::string id = harness.Submit(MakeSpec("first", 2));
  const std::string next = harness.Submit(MakeSpec("second", 2));
  EXPECT_EQ(harness.Job(next).state(), v1::QUEUED);
  EXPECT_EQ(harness.Job(next).queue_status().position(), 1);
  EXPECT_THAT(harness.Job(next).queue_status().reason(), HasSubstr("held by " + id));
  v1::CancelJobRequest request;
  request.set_job(id);
  v1::JobState replied = v1::JOB_STATE_UNSPECIFIED;
  harness.manager->Cancel(request, [&replied](absl::StatusOr<v1::Job> job) { replied = job->state(); });
  harness.store->CommitPending();
  EXPECT_EQ(replied, v1::CANCELLING);
  harness.Settle();
  EXPECT_EQ(harness.Job(id).state(), v1::CANCELLED);
  EXPECT_EQ(harness.Job(next).state(), v1::STARTING);
}

TEST(GangSupervisorTest, RanksThatACancellationEndedAreNotToldOfAsFailures) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 2);
  const std::string id = harness.Submit(MakeSpec("tiny", 2));
  harness.Train();
  agent.obeys = false;
  v1::CancelJobRequest request;
  request.set_job(id);
  harness.manager->Cancel(request, [](absl::StatusOr<v1::Job> job) { EXPECT_TRUE(job.ok()) << job.status(); });
  harness.Settle();
  for (int64_t rank = 0; rank < 2; ++rank) {
    agent.End(rank, v1::EXIT_KILLED, 9, "killed: the coordinator ended this attempt");
  }
  harness.Settle();
  ASSERT_EQ(harness.Job(id).state(), v1::CANCELLED);
  const std::vector<v1::Event> ends = EventsOf(harness, id, "RANK_EXITED");
  ASSERT_EQ(ends.size(), 2);
  EXPECT_EQ(ends[1].severity(), v1::INFO);
  EXPECT_EQ(ends[1].message(), "rank 1 stopped on worker-0");
  EXPECT_EQ(harness.Job(id).ranks(1).exit_reason(), "rank 1 stopped on worker-0");
}

TEST(GangSupervisorTest, PausingStopsAtACheckpointAndResumingGoesOnThere) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 2);
  const std::string id = harness.Submit(MakeSpec("tiny", 2));
  harness.Train();
  harness.ReportStep(id, 7);
  harness.ReportCheckpoint(id, 7);
  v1::PauseJobRequest pause;
  pause.set_job(id);
  harness.manager->Pause(pause, [](absl::StatusOr<v1::Job> job) { EXPECT_EQ(job->state(), v1::PAUSING); });
  harness.Settle();
  EXPECT_EQ(harness.Job(id).state(), v1::PAUSED);
  v1::ResumeJobRequest resume;
  resume.set_job(id);
  harness.manager->Resume(resume, [](absl::StatusOr<v1::Job> job) { EXPECT_TRUE(job.ok()) << job.status(); });
  harness.Settle();
  EXPECT_EQ(harness.Job(id).attempt(), 2);
  EXPECT_EQ(agent.desired.assignments(0).resume_step(), 7);
  EXPECT_EQ(harness.Job(id).restarts(), 0) << "a pause is no failure";
}

TEST(GangSupervisorTest, APauseBeforeAnyCheckpointDoesNotClaimOne) {
  CoordinatorHarness harness;
  harness.AddAgent("worker-0", 2);
  const std::string id = harness.Submit(MakeSpec("tiny", 2));
  v1::PauseJobRequest pause;
  pause.set_job(id);
  harness.manager->Pause(pause, [](absl::StatusOr<v1::Job> job) { EXPECT_EQ(job->state(), v1::PAUSING); });
  harness.Settle();
  EXPECT_EQ(harness.Job(id).state(), v1::PAUSED);
  EXPECT_EQ(harness.Job(id).state_reason(), "stopped before its first checkpoint");
}

TEST(GangSupervisorTest, TheTimeOfAPauseIsNoRecoveryTime) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 2);
  const std::string id = harness.Submit(MakeSpec("tiny", 2));
  harness.Train();
  harness.ReportStep(id, 1);
  agent.End(0, v1::EXIT_CRASHED, 11);
  harness.Settle();
  ASSERT_EQ(harness.Job(id).state(), v1::STARTING);
  v1::PauseJobRequest pause;
  pause.set_job(id);
  harness.manager->Pause(pause, [](absl::StatusOr<v1::Job> job) { EXPECT_TRUE(job.ok()) << job.status(); });
  harness.Settle();
  ASSERT_EQ(harness.Job(id).state(), v1::PAUSED);
  harness.clock.Advance(absl::Hours(3));
  v1::ResumeJobRequest resume;
  resume.set_job(id);
  harness.manager->Resume(resume, [](absl::StatusOr<v1::Job> job) { EXPECT_TRUE(job.ok()) << job.status(); });
  harness.Settle();
  harness.Train();
  harness.ReportStep(id, 1);
  EXPECT_EQ(harness.Job(id).state(), v1::RUNNING);
  EXPECT_FALSE(harness.Job(id).has_last_recovery()) << harness.Job(id).last_recovery().ShortDebugString();
}

TEST(GangSupervisorTest, AnUnreadableCheckpointIsPassedOverForAnOlderOne) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 2);
  const std::string id = harness.Submit(MakeSpec("tiny", 2));
  harness.Train();
  harness.ReportStep(id, 10);
  harness.ReportCheckpoint(id, 10);
  harness.ReportStep(id, 20);
  harness.ReportCheckpoint(id, 20);
  agent.End(0, v1::EXIT_CRASHED, 11);
  harness.Settle();
  ASSERT_EQ(agent.desired.assignments(0).resume_step(), 20);
  agent.End(1, v1::EXIT_BAD_CHECKPOINT, 0, "rank-00000.safetensors is damaged");
  harness.Settle();
  EXPECT_EQ(harness.Job(id).attempt(), 3);
  EXPECT_EQ(agent.desired.assignments(0).resume_step(), 10);
  EXPECT_EQ(harness.Job(id).last_checkpoint().step(), 10);
  EXPECT_EQ(agent.desired.assignments(0).delete_checkpoints_size(), 0) << "what is left of it may be looked at";

  agent.End(1, v1::EXIT_BAD_CHECKPOINT, 0, "rank-00000.safetensors is damaged");
  harness.Settle();
  EXPECT_EQ(harness.Job(id).state(), v1::FAILED);
  EXPECT_EQ(harness.Job(id).state_reason_code(), "BAD_CHECKPOINT");
  EXPECT_THAT(harness.Job(id).state_reason(), HasSubstr("is damaged; there is no older checkpoint"));
}

TEST(GangSupervisorTest, AnUnreachableWorkerDoesNotHoldACancellationForEver) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  harness.Train();
  harness.Disconnect(agent);
  v1::CancelJobRequest request;
  request.set_job(id);
  harness.manager->Cancel(request, [](absl::StatusOr<v1::Job> job) { EXPECT_TRUE(job.ok()) << job.status(); });
  harness.Pass(absl::Seconds(30));
  EXPECT_EQ(harness.Job(id).state(), v1::CANCELLED);
  EXPECT_THAT(harness.Job(id).state_reason(), HasSubstr("not every rank is known to have ended"));
  // When it comes back it is told to end what still runs.
  ASSERT_TRUE(harness.Connect(agent).ok());
  harness.Settle();
  EXPECT_TRUE(agent.ranks.empty());
}

TEST(GangSupervisorTest, ARankThatDoesNotStopIsKilledAndThenNoLongerWaitedFor) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 2);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  harness.Train();
  agent.obeys = false;
  v1::PauseJobRequest pause;
  pause.set_job(id);
  harness.manager->Pause(pause, [](absl::StatusOr<v1::Job> job) { EXPECT_TRUE(job.ok()) << job.status(); });
  harness.Pass(absl::Seconds(29));
  EXPECT_TRUE(agent.Wants(0, v1::STOP));
  harness.Pass(absl::Seconds(5));
  EXPECT_TRUE(agent.Wants(0, v1::KILL));
  EXPECT_EQ(harness.Job(id).state(), v1::PAUSING);
  harness.Pass(absl::Seconds(20));
  EXPECT_EQ(harness.Job(id).state(), v1::PAUSED);
  EXPECT_EQ(harness.Job(id).state_reason_code(), "GAVE_UP_WAITING");

  // It may be resumed, but not started beside a rank that lives, though a device is free.
  v1::ResumeJobRequest resume;
  resume.set_job(id);
  harness.manager->Resume(resume, [](absl::StatusOr<v1::Job> job) { EXPECT_TRUE(job.ok()) << job.status(); });
  harness.Pass(absl::Seconds(5));
  EXPECT_EQ(harness.Job(id).state(), v1::QUEUED);
  EXPECT_THAT(harness.Job(id).state_reason(), HasSubstr("waits for the ranks of attempt 1 to end on worker-0"));
  agent.obeys = true;
  agent.End(0, v1::EXIT_KILLED, 9);
  harness.Settle();
  EXPECT_EQ(harness.Job(id).attempt(), 2);
}

TEST(GangSupervisorTest, ACrashWhilePausingPausesAtTheLastCheckpoint) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 2);
  const std::string id = harness.Submit(MakeSpec("tiny", 2));
  harness.Train();
  agent.obeys = false;
  v1::PauseJobRequest pause;
  pause.set_job(id);
  harness.manager->Pause(pause, [](absl::StatusOr<v1::Job> job) { EXPECT_TRUE(job.ok()) << job.status(); });
  harness.Settle();
  agent.End(0, v1::EXIT_CRASHED, 11);
  harness.Settle();
  EXPECT_TRUE(agent.Wants(1, v1::KILL)) << "its neighbour would wait for it for ever";
  agent.End(1, v1::EXIT_KILLED, 9);
  harness.Settle();
  EXPECT_EQ(harness.Job(id).state(), v1::PAUSED);
}

TEST(GangSupervisorTest, ALostWorkerIsReplacedOnceTheRestOfTheGangIsDead) {
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

TEST(GangSupervisorTest, ASilentWorkerIsToldOfOnceAndItsRanksAreNotShownAsTraining) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  harness.Train();
  harness.ReportStep(id, 1);
  const std::string reason = harness.Job(id).state_reason();
  harness.Disconnect(agent);
  harness.Pass(absl::Seconds(10));
  EXPECT_TRUE(EventsOf(harness, id, "WORKER_LOST").empty()) << "its lease still holds";
  harness.Pass(absl::Seconds(30));
  const v1::Job silent = harness.Job(id);
  EXPECT_EQ(silent.state(), v1::RUNNING) << "it may well train";
  EXPECT_EQ(silent.state_reason_code(), "WORKER_LOST");
  EXPECT_THAT(silent.state_reason(), HasSubstr("worker-0 has been silent since"));
  EXPECT_EQ(silent.ranks(0).state(), "unreachable");
  EXPECT_EQ(silent.progress().tokens_per_second(), 0);
  const std::vector<v1::Event> lost = EventsOf(harness, id, "WORKER_LOST");
  ASSERT_EQ(lost.size(), 1);
  EXPECT_EQ(lost[0].severity(), v1::WARNING);
  EXPECT_EQ(lost[0].worker(), "worker-0");
  EXPECT_EQ(lost[0].message(),
            "worker-0 has been silent for 11.0 s; its ranks end by themselves, and may start elsewhere, in 4 min 49 s");

  harness.Restart();
  harness.Pass(absl::Seconds(5));
  EXPECT_TRUE(EventsOf(harness, id, "WORKER_BACK").empty()) << "nobody heard it yet";
  ASSERT_TRUE(harness.Connect(agent).ok());
  harness.Pass(absl::Seconds(2));
  const v1::Job back = harness.Job(id);
  EXPECT_EQ(back.state_reason(), reason);
  EXPECT_EQ(back.state_reason_code(), "TRAINING");
  EXPECT_EQ(back.ranks(0).state(), "training");
  EXPECT_EQ(back.attempt(), 1);
  const std::vector<v1::Event> returns = EventsOf(harness, id, "WORKER_BACK");
  ASSERT_EQ(returns.size(), 1);
  EXPECT_EQ(returns[0].severity(), v1::INFO);
  EXPECT_EQ(returns[0].message(), "worker-0 is heard again");
}

TEST(GangSupervisorTest, AGangThatMovesProvesThatItsUnreachableWorkerLives) {
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
  const std::vector<v1::Event> lost = EventsOf(harness, id, "WORKER_LOST");
  ASSERT_EQ(lost.size(), 1);
  EXPECT_THAT(lost[0].message(), HasSubstr("the job goes on while its other ranks do steps"));
}

TEST(GangSupervisorTest, WithoutAnyContactOnlyTheFenceFreesAJob) {
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

TEST(GangSupervisorTest, ARestartedCoordinatorAdoptsTheRanksThatTrain) {
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

TEST(GangSupervisorTest, ARankThatEndedWhileTheCoordinatorWasAwayIsRecoveredFrom) {
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

TEST(GangSupervisorTest, ANewAgentUnderAnOldNameMeansThatTheOldRanksAreDead) {
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

TEST(GangSupervisorTest, AReportThatIsRepeatedCountsOnce) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  harness.Train();
  v1::RankReport report;
  report.set_job_id(id);
  report.set_attempt(1);
  report.set_sequence(5);
  report.mutable_checkpoint()->set_step(4);
  report.mutable_checkpoint()->set_path("c/attempt-1/step-4");
  report.mutable_checkpoint()->set_bytes(10);
  harness.supervisor->OnReport(agent.name, report);
  harness.supervisor->OnReport(agent.name, report);
  harness.Restart();
  harness.supervisor->OnReport(agent.name, report);
  harness.store->CommitPending();
  EXPECT_EQ(harness.Job(id).last_checkpoint().bytes(), 10);
}

TEST(GangSupervisorTest, WhatARankTellsIsAnEventOfTheJobOnce) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  harness.Train();
  v1::RankReport report;
  report.set_job_id(id);
  report.set_attempt(1);
  report.set_sequence(5);
  report.mutable_event()->set_severity(v1::WARNING);
  report.mutable_event()->set_type("STEP_SKIPPED");
  report.mutable_event()->set_message("step 7 is skipped");
  report.mutable_event()->set_rank(-1);
  (*report.mutable_event()->mutable_details())["step"] = "7";
  harness.supervisor->OnReport(agent.name, report);
  harness.supervisor->OnReport(agent.name, report);  // repeated after a reconnect
  harness.Settle();
  const std::vector<v1::Event> events = EventsOf(harness, id, "STEP_SKIPPED");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].severity(), v1::WARNING);
  EXPECT_EQ(events[0].message(), "step 7 is skipped");
  EXPECT_EQ(events[0].attempt(), 1);
  EXPECT_EQ(events[0].rank(), -1);
  EXPECT_EQ(events[0].details().at("step"), "7");
}

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

TEST(GangSupervisorTest, ARewindGoesOnFromTheCheckpointBeforeItsTargetAndBehindTheBadSamples) {
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
  const std::vector<v1::Event> events = EventsOf(harness, id, "LOSS_SPIKE_REWIND");
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

TEST(GangSupervisorTest, ARewindToBeforeTheFirstCheckpointBeginsAnewBehindTheBadSamples) {
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

TEST(GangSupervisorTest, ARewindBeyondTheCheckpointsThatAreKeptTakesTheOldest) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  harness.Train();
  for (const int64_t step : {200, 210}) harness.ReportCheckpoint(id, step);
  EndToRewind(harness, agent, 1, /*step=*/212, /*target=*/111);
  EXPECT_EQ(agent.desired.assignments(0).resume_from(), id + "/attempt-1/step-200");
}

TEST(GangSupervisorTest, RewindsAreBoundedAndTheJobSaysSo) {
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

TEST(GangSupervisorTest, ARewindOfAJobThatIsPausedHappensWhenItIsResumed) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  harness.Train();
  for (const int64_t step : {10, 20}) harness.ReportCheckpoint(id, step);
  agent.obeys = false;  // it is in the middle of the bad step
  v1::PauseJobRequest pause;
  pause.set_job(id);
  harness.manager->Pause(pause, [](absl::StatusOr<v1::Job>) {});
  harness.Settle();
  EndToRewind(harness, agent, 1, /*step=*/21, /*target=*/15);
  EXPECT_EQ(harness.Job(id).state(), v1::PAUSED);
  agent.obeys = true;
  v1::ResumeJobRequest resume;
  resume.set_job(id);
  harness.manager->Resume(resume, [](absl::StatusOr<v1::Job>) {});
  harness.Settle();
  ASSERT_EQ(agent.desired.assignments_size(), 1);
  EXPECT_EQ(agent.desired.assignments(0).resume_from(), id + "/attempt-1/step-10");
  EXPECT_EQ(agent.desired.assignments(0).next_sample(), 21 * 8);
}

TEST(GangSupervisorTest, OldCheckpointsAreOrderedToBeDeletedByRankZeroOnly) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 2);
  const std::string id = harness.Submit(MakeSpec("tiny", 2));  // keeps 2
  harness.Train();
  for (int64_t step : {10, 20, 30}) harness.ReportCheckpoint(id, step);
  harness.Settle();
  ASSERT_EQ(agent.desired.assignments(0).delete_checkpoints_size(), 1);
  EXPECT_EQ(agent.desired.assignments(0).delete_checkpoints(0), id + "/attempt-1/step-10");
  EXPECT_EQ(agent.desired.assignments(1).delete_checkpoints_size(), 0);
}

TEST(GangSupervisorTest, AnAttemptThatNeverTrainsIsGivenUp) {
  CoordinatorHarness harness;
  harness.AddAgent("worker-0", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  harness.Pass(absl::Seconds(155));
  EXPECT_EQ(harness.Job(id).attempt(), 2);
}

TEST(GangSupervisorTest, AJobThatMayNotWaitLongerFails) {
  CoordinatorHarness harness;
  v1::JobSpec spec = MakeSpec("tiny", 1);
  spec.mutable_policy()->mutable_start_deadline()->set_seconds(60);
  const std::string id = harness.Submit(spec);
  harness.Pass(absl::Seconds(59));
  EXPECT_EQ(harness.Job(id).state(), v1::QUEUED);
  harness.Pass(absl::Seconds(3));
  EXPECT_EQ(harness.Job(id).state(), v1::FAILED);
  EXPECT_EQ(harness.Job(id).state_reason_code(), "START_DEADLINE");
}

TEST(GangSupervisorTest, ACordonedWorkerTakesNoNewRanks) {
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

TEST(GangSupervisorTest, AFailedCommitReleasesNothing) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  harness.store->FailWith(absl::ResourceExhaustedError("no space"));
  v1::SubmitJobRequest request;
  *request.mutable_spec() = MakeSpec("tiny", 1);
  absl::Status replied;
  harness.manager->Submit(request, [&replied](absl::StatusOr<v1::Job> job) { replied = job.status(); });
  harness.Settle();
  EXPECT_EQ(replied.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(harness.store_failure.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(agent.desired.assignments_size(), 0);
}

}  // namespace
}  // namespace muster
