#include "server/job/gang_supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/coordinator_harness.h"

namespace muster {
namespace {

using testing::Contains;
using testing::HasSubstr;

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
  const std::vector<v1::Event> again = harness.Events(id, "TRAINING_AGAIN");
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
  const std::vector<v1::Event> again = harness.Events(id, "TRAINING_AGAIN");
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
  harness.Cancel(id);
  harness.Settle();
  for (int64_t rank = 0; rank < 2; ++rank) {
    agent.End(rank, v1::EXIT_KILLED, 9, "killed: the coordinator ended this attempt");
  }
  harness.Settle();
  ASSERT_EQ(harness.Job(id).state(), v1::CANCELLED);
  const std::vector<v1::Event> ends = harness.Events(id, "RANK_EXITED");
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
  harness.Resume(id);
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
  harness.Pause(id);
  harness.Settle();
  ASSERT_EQ(harness.Job(id).state(), v1::PAUSED);
  harness.clock.Advance(absl::Hours(3));
  harness.Resume(id);
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

TEST(GangSupervisorTest, ARankThatDoesNotStopIsKilledAndThenNoLongerWaitedFor) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 2);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  harness.Train();
  agent.obeys = false;
  harness.Pause(id);
  harness.Pass(absl::Seconds(29));
  EXPECT_TRUE(agent.Wants(0, v1::STOP));
  harness.Pass(absl::Seconds(5));
  EXPECT_TRUE(agent.Wants(0, v1::KILL));
  EXPECT_EQ(harness.Job(id).state(), v1::PAUSING);
  harness.Pass(absl::Seconds(20));
  EXPECT_EQ(harness.Job(id).state(), v1::PAUSED);
  EXPECT_EQ(harness.Job(id).state_reason_code(), "GAVE_UP_WAITING");

  // It may be resumed, but not started beside a rank that lives, though a device is free.
  harness.Resume(id);
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
  harness.Pause(id);
  harness.Settle();
  agent.End(0, v1::EXIT_CRASHED, 11);
  harness.Settle();
  EXPECT_TRUE(agent.Wants(1, v1::KILL)) << "its neighbour would wait for it for ever";
  agent.End(1, v1::EXIT_KILLED, 9);
  harness.Settle();
  EXPECT_EQ(harness.Job(id).state(), v1::PAUSED);
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
  const std::vector<v1::Event> events = harness.Events(id, "STEP_SKIPPED");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].severity(), v1::WARNING);
  EXPECT_EQ(events[0].message(), "step 7 is skipped");
  EXPECT_EQ(events[0].attempt(), 1);
  EXPECT_EQ(events[0].rank(), -1);
  EXPECT_EQ(events[0].details().at("step"), "7");
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
