#include "server/job/job_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "common/rpc/grpc_status.h"
#include "tests/support/coordinator_harness.h"

namespace muster {
namespace {

using testing::Contains;
using testing::HasSubstr;

class JobChangesTest : public testing::Test {
 protected:
  absl::StatusOr<v1::Job> Update(const std::string& job, int64_t steps) {
    v1::UpdateJobRequest request;
    request.set_job(job);
    request.mutable_spec()->mutable_training()->set_steps(steps);
    request.mutable_update_mask()->add_paths("training.steps");
    absl::StatusOr<v1::Job> result = absl::UnknownError("no reply");
    harness_.changes->Update(request, [&result](absl::StatusOr<v1::Job> reply) { result = std::move(reply); });
    harness_.Settle();
    return result;
  }
  absl::StatusOr<v1::Job> Fork(const v1::ForkJobRequest& request) {
    absl::StatusOr<v1::Job> result = absl::UnknownError("no reply");
    harness_.changes->Fork(request, [&result](absl::StatusOr<v1::Job> reply) { result = std::move(reply); });
    harness_.Settle();
    return result;
  }
  v1::ForkJobRequest ForkOf(const std::string& job, int64_t step = 0) {
    v1::ForkJobRequest request;
    request.set_job(job);
    request.set_step(step);
    return request;
  }
  // Trains to the step, with a checkpoint there.
  std::string Trained(int64_t step) {
    const std::string job = harness_.Submit(MakeSpec("tiny", 2));
    harness_.Train();
    harness_.ReportStep(job, step);
    harness_.ReportCheckpoint(job, step);
    return job;
  }
  void EndAll(v1::ExitKind kind) {
    for (int64_t rank = 0; rank < 2; ++rank) agent_.End(rank, kind);
    harness_.Settle();
  }

  CoordinatorHarness harness_;
  FakeAgent& agent_ = harness_.AddAgent("worker-0", 2);
};

TEST_F(JobChangesTest, ACheckpointNowIsAskedOfTheRanksAndAnsweredWhenItIsComplete) {
  const std::string job = Trained(10);
  harness_.ReportStep(job, 11);
  std::vector<absl::StatusOr<v1::Checkpoint>> replies;
  v1::SaveCheckpointRequest request;
  request.set_job(job);
  for (int call = 0; call < 2; ++call) {
    harness_.changes->SaveCheckpoint(request, [&](absl::StatusOr<v1::Checkpoint> reply) { replies.push_back(reply); });
  }
  harness_.Settle();
  EXPECT_TRUE(replies.empty()) << "step 11 is not in a checkpoint";
  EXPECT_EQ(agent_.desired.assignments(0).commands().checkpoint(), 1) << "one serves both";
  harness_.ReportCheckpoint(job, 12);
  harness_.Settle();
  ASSERT_EQ(replies.size(), 2u);
  ASSERT_TRUE(replies[0].ok()) << replies[0].status();
  EXPECT_EQ(replies[0]->step(), 12);
  EXPECT_EQ(harness_.Job(job).attempt(), 1);
}

TEST_F(JobChangesTest, ACheckpointOfTheNewestStepIsAnswerEnough) {
  const std::string job = Trained(10);
  v1::SaveCheckpointRequest request;
  request.set_job(job);
  std::optional<int64_t> step;
  harness_.changes->SaveCheckpoint(request, [&](absl::StatusOr<v1::Checkpoint> reply) { step = reply->step(); });
  EXPECT_EQ(step, 10);
}

TEST_F(JobChangesTest, ACheckpointThatTheAttemptDoesNotLiveToWriteIsAborted) {
  const std::string job = Trained(10);
  harness_.ReportStep(job, 11);
  v1::SaveCheckpointRequest request;
  request.set_job(job);
  absl::StatusOr<v1::Checkpoint> result = absl::UnknownError("no reply");
  harness_.changes->SaveCheckpoint(request, [&](absl::StatusOr<v1::Checkpoint> reply) { result = std::move(reply); });
  agent_.End(1, v1::EXIT_CRASHED, 9);
  harness_.Settle();
  EXPECT_EQ(result.status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ErrorInfoOf(result.status()).reason(), "ATTEMPT_ENDED");
}

TEST_F(JobChangesTest, ACheckpointOfAJobThatDoesNotTrainIsRefusedWithItsState) {
  const std::string job = Trained(10);
  EndAll(v1::EXIT_COMPLETED);
  v1::SaveCheckpointRequest request;
  request.set_job(job);
  absl::StatusOr<v1::Checkpoint> result = absl::UnknownError("no reply");
  harness_.changes->SaveCheckpoint(request, [&](absl::StatusOr<v1::Checkpoint> reply) { result = std::move(reply); });
  EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(result.status().message(), HasSubstr("COMPLETED"));
}

TEST_F(JobChangesTest, ACompletedJobWithMoreStepsIsQueuedAndTrainsOnFromItsLastCheckpoint) {
  const std::string job = Trained(100);
  EndAll(v1::EXIT_COMPLETED);
  ASSERT_EQ(harness_.Job(job).state(), v1::COMPLETED);
  ASSERT_TRUE(Update(job, 150).ok());
  const v1::Job now = harness_.Job(job);
  EXPECT_EQ(now.state(), v1::STARTING);
  EXPECT_EQ(now.attempt(), 2);
  EXPECT_FALSE(now.has_ended_at());
  EXPECT_EQ(agent_.desired.assignments(0).resume_step(), 100);
  EXPECT_EQ(agent_.desired.assignments(0).resolved_spec().training().steps(), 150);
}

TEST_F(JobChangesTest, ARunningJobLearnsOfMoreStepsByAnAttemptThatCostsNothing) {
  const std::string job = Trained(10);
  ASSERT_TRUE(Update(job, 150).ok());
  harness_.Settle();  // the agent stops its ranks, which ends the attempt
  const v1::Job now = harness_.Job(job);
  EXPECT_EQ(now.attempt(), 2);
  EXPECT_EQ(now.restarts(), 0);
  EXPECT_EQ(agent_.desired.assignments(0).resolved_spec().training().steps(), 150);
  EXPECT_THAT(harness_.EventTypes(job), Contains("RESTART_PLANNED"));
}

TEST_F(JobChangesTest, AJobThatEndsBeforeItHearsOfMoreStepsTrainsOn) {
  const std::string job = Trained(100);
  agent_.obeys = false;
  ASSERT_TRUE(Update(job, 150).ok());
  EndAll(v1::EXIT_COMPLETED);
  EXPECT_EQ(harness_.Job(job).attempt(), 2);
  EXPECT_NE(harness_.Job(job).state(), v1::COMPLETED);
}

TEST_F(JobChangesTest, StepsThatAreDoneCannotBeTakenBack) {
  const std::string job = Trained(10);
  const absl::Status refused = Update(job, 10).status();
  EXPECT_EQ(BadRequestOf(refused).field_violations(0).field(), "spec.training.steps");
  v1::UpdateJobRequest request;
  request.set_job(job);
  request.mutable_update_mask()->add_paths("model.hidden");
  absl::Status other;
  harness_.changes->Update(request, [&](absl::StatusOr<v1::Job> reply) { other = reply.status(); });
  EXPECT_THAT(other.message(), HasSubstr("model.hidden"));
}

TEST_F(JobChangesTest, AForkBeginsWithTheCheckpointOfItsSource) {
  const std::string source = Trained(10);
  harness_.ReportCheckpoint(source, 20);
  EndAll(v1::EXIT_COMPLETED);
  v1::ForkJobRequest request = ForkOf(source, 10);
  request.mutable_spec()->mutable_training()->mutable_optimizer()->mutable_adamw()->set_lr(1e-4);
  request.mutable_update_mask()->add_paths("training.optimizer.adamw.lr");
  const absl::StatusOr<v1::Job> fork = Fork(request);
  ASSERT_TRUE(fork.ok()) << fork.status();
  EXPECT_EQ(fork->forked_from().job_id(), source);
  EXPECT_EQ(fork->spec().training().steps(), 100) << "as the source";
  EXPECT_EQ(fork->spec().training().optimizer().adamw().lr(), 1e-4);
  EXPECT_EQ(agent_.desired.assignments(0).resume_from(), source + "/attempt-1/step-10");
  EXPECT_EQ(agent_.desired.assignments(0).resume_step(), 10);
}

TEST_F(JobChangesTest, AForkOfAnotherModelIsRefusedByTheField) {
  const std::string source = Trained(10);
  v1::ForkJobRequest request = ForkOf(source);
  request.mutable_spec()->mutable_model()->set_hidden(128);
  request.mutable_update_mask()->add_paths("model.hidden");
  const absl::Status refused = Fork(request).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BadRequestOf(refused).field_violations(0).field(), "spec.model.hidden");
  EXPECT_EQ(Fork(ForkOf(source, 7)).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(JobChangesTest, WhatAForkNeedsIsNotDeletedBeforeItHasItsOwn) {
  const std::string source = Trained(10);
  const absl::StatusOr<v1::Job> fork = Fork(ForkOf(source));
  ASSERT_TRUE(fork.ok()) << fork.status();
  for (int64_t step = 20; step <= 40; step += 10) harness_.ReportCheckpoint(source, step);
  harness_.Settle();
  const auto paths = [&] {
    v1::ListCheckpointsRequest request;
    request.set_job(source);
    std::vector<std::string> found;
    const absl::StatusOr<v1::ListCheckpointsResponse> listed = harness_.manager->ListCheckpoints(request);
    for (const v1::Checkpoint& checkpoint : listed->checkpoints()) found.push_back(checkpoint.path());
    return found;
  };
  EXPECT_THAT(paths(), testing::ElementsAre(source + "/attempt-1/step-40", source + "/attempt-1/step-30",
                                            source + "/attempt-1/step-10"));
  EXPECT_THAT(agent_.desired.assignments(0).delete_checkpoints(), testing::ElementsAre(source + "/attempt-1/step-20"));
  harness_.Cancel(fork->id());
  harness_.Settle();
  harness_.ReportCheckpoint(source, 50);
  EXPECT_THAT(paths(), testing::ElementsAre(source + "/attempt-1/step-50", source + "/attempt-1/step-40"));
}

TEST_F(JobChangesTest, AForkKeepsToTheRulesOfRequestIds) {
  const std::string source = Trained(10);
  v1::ForkJobRequest request = ForkOf(source);
  request.set_request_id("once");
  const absl::StatusOr<v1::Job> fork = Fork(request);
  ASSERT_TRUE(fork.ok()) << fork.status();
  EXPECT_EQ(Fork(request)->id(), fork->id());

  request.set_job(fork->id());
  EXPECT_THAT(std::string(Fork(request).status().message()), HasSubstr("request_id once submitted another spec"));
  request.set_request_id(std::string(65, 'x'));
  EXPECT_THAT(std::string(Fork(request).status().message()), HasSubstr("request_id"));
}

}  // namespace
}  // namespace muster
