#include "server/job/job_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/rpc/grpc_status.h"
#include "tests/support/coordinator_harness.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<v1::Job> Submit(CoordinatorHarness& harness, const v1::SubmitJobRequest& request) {
  absl::StatusOr<v1::Job> result = absl::UnknownError("no reply");
  harness.manager->Submit(request, [&result](absl::StatusOr<v1::Job> job) { result = std::move(job); });
  harness.Settle();
  return result;
}

v1::SubmitJobRequest MakeRequest(const std::string& name, const std::string& request_id) {
  v1::SubmitJobRequest request;
  *request.mutable_spec() = MakeSpec(name, 1);
  request.set_request_id(request_id);
  return request;
}

// What a watcher was told.
class RecordingWatcher : public JobWatcher {
 public:
  void OnChange(const v1::WatchJobResponse& change) override { changes.push_back(change); }
  void OnEnd(absl::Status status) override {
    ended = true;
    end = std::move(status);
  }

  std::vector<v1::WatchJobResponse> changes;
  bool ended = false;
  absl::Status end;
};

TEST(JobManagerTest, ANameMeansTheNewestJobOfItThatHasNotEnded) {
  CoordinatorHarness harness;
  const std::string older = harness.Submit(MakeSpec("dup", 1));
  const std::string newer = harness.Submit(MakeSpec("dup", 1));
  EXPECT_EQ(harness.manager->Get("dup")->id(), newer);
  const auto cancel = [&harness](const std::string& job) {
    v1::CancelJobRequest request;
    request.set_job(job);
    std::string cancelled;
    harness.manager->Cancel(request, [&cancelled](absl::StatusOr<v1::Job> reply) {
      ASSERT_TRUE(reply.ok()) << reply.status();
      cancelled = reply->id();
    });
    harness.Settle();
    return cancelled;
  };
  EXPECT_EQ(cancel(newer), newer);
  EXPECT_EQ(harness.manager->Get("dup")->id(), older);
  EXPECT_EQ(cancel("dup"), older);
  EXPECT_EQ(harness.manager->Get("dup")->id(), newer) << "all have ended: the newest";
}

TEST(JobManagerTest, ARepeatedRequestReturnsTheFirstJobEvenAfterARestart) {
  CoordinatorHarness harness;
  const absl::StatusOr<v1::Job> first = Submit(harness, MakeRequest("tiny", "request-1"));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(Submit(harness, MakeRequest("tiny", "request-1"))->id(), first->id());
  harness.Restart();
  EXPECT_EQ(Submit(harness, MakeRequest("tiny", "request-1"))->id(), first->id());
  EXPECT_EQ(harness.table->jobs().size(), 1u);
}

TEST(JobManagerTest, ARequestIdIsNotReusedForAnotherSpec) {
  CoordinatorHarness harness;
  ASSERT_TRUE(Submit(harness, MakeRequest("tiny", "request-1")).ok());
  const absl::StatusOr<v1::Job> other = Submit(harness, MakeRequest("other", "request-1"));
  EXPECT_EQ(other.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorInfoOf(other.status()).reason(), "REQUEST_ID_REUSED");
}

TEST(JobManagerTest, ValidateOnlyChecksAndStoresNothing) {
  CoordinatorHarness harness;
  v1::SubmitJobRequest request = MakeRequest("tiny", "");
  request.set_validate_only(true);
  const absl::StatusOr<v1::Job> job = Submit(harness, request);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->id(), "");
  EXPECT_TRUE(job->plan().feasible());
  request.mutable_spec()->clear_name();
  EXPECT_EQ(BadRequestOf(Submit(harness, request).status()).field_violations(0).field(), "spec.name");
  EXPECT_TRUE(harness.table->jobs().empty());
}

TEST(JobManagerTest, AJobIsFoundByIdAndByTheNewestOfItsName) {
  CoordinatorHarness harness;
  harness.Submit(MakeSpec("twin", 1));
  const std::string second = harness.Submit(MakeSpec("twin", 1));
  EXPECT_EQ(harness.manager->Get("job-1")->id(), "job-1");
  EXPECT_EQ(harness.manager->Get("twin")->id(), second);
  const absl::Status unknown = harness.manager->Get("job-9").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrorInfoOf(unknown).reason(), "JOB_NOT_FOUND");
  EXPECT_EQ(ErrorInfoOf(unknown).metadata().at("job"), "job-9");
}

TEST(JobManagerTest, ListsPageNewestFirstAndRefuseForeignTokens) {
  CoordinatorHarness harness;
  for (int i = 0; i < 5; ++i) harness.Submit(MakeSpec("tiny", 1));
  v1::ListJobsRequest request;
  request.set_page_size(2);
  std::vector<std::string> ids;
  int pages = 0;
  do {
    const absl::StatusOr<v1::ListJobsResponse> page = harness.manager->List(request);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const v1::Job& job : page->jobs()) ids.push_back(job.id());
    request.set_page_token(page->next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(pages, 3);
  EXPECT_THAT(ids, ElementsAre("job-5", "job-4", "job-3", "job-2", "job-1"));

  v1::ListEventsRequest events;
  request.clear_page_token();
  events.set_page_token(harness.manager->List(request)->next_page_token());
  const absl::Status foreign = harness.manager->ListEvents(events).status();
  EXPECT_EQ(foreign.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorInfoOf(foreign).reason(), "INVALID_PAGE_TOKEN");
}

TEST(JobManagerTest, ListsSelectByStateAndLabel) {
  CoordinatorHarness harness;
  v1::JobSpec labelled = MakeSpec("tiny", 1);
  (*labelled.mutable_labels())["team"] = "a";
  harness.Submit(MakeSpec("tiny", 1));
  const std::string wanted = harness.Submit(labelled);
  v1::ListJobsRequest request;
  (*request.mutable_labels())["team"] = "a";
  ASSERT_EQ(harness.manager->List(request)->jobs_size(), 1);
  EXPECT_EQ(harness.manager->List(request)->jobs(0).id(), wanted);
  request.add_states(v1::RUNNING);
  EXPECT_EQ(harness.manager->List(request)->jobs_size(), 0);
}

TEST(JobManagerTest, AnIllegalStateIsNamed) {
  CoordinatorHarness harness;
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  v1::ResumeJobRequest resume;
  resume.set_job(id);
  absl::Status refused;
  harness.manager->Resume(resume, [&refused](absl::StatusOr<v1::Job> job) { refused = job.status(); });
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("cannot resume job-1: it is QUEUED"));
  EXPECT_EQ(ErrorInfoOf(refused).metadata().at("state"), "QUEUED");
}

TEST(JobManagerTest, AWatcherGetsASnapshotThenCommittedChangesThenTheEnd) {
  CoordinatorHarness harness;
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  RecordingWatcher watcher;
  v1::WatchJobRequest request;
  request.set_job(id);
  ASSERT_TRUE(harness.manager->Watch(request, &watcher).ok());
  ASSERT_EQ(watcher.changes.size(), 1u);
  EXPECT_EQ(watcher.changes[0].job().state(), v1::QUEUED);

  v1::CancelJobRequest cancel;
  cancel.set_job(id);
  harness.manager->Cancel(cancel, [](absl::StatusOr<v1::Job>) {});
  EXPECT_EQ(watcher.changes.size(), 1u) << "not stored yet, so not told yet";
  harness.store->CommitPending();
  ASSERT_EQ(watcher.changes.size(), 2u);
  EXPECT_EQ(watcher.changes[1].job().state(), v1::CANCELLED);
  ASSERT_EQ(watcher.changes[1].events_size(), 1);
  EXPECT_EQ(watcher.changes[1].events(0).details().at("to"), "CANCELLED");
  EXPECT_TRUE(watcher.ended);
  EXPECT_TRUE(watcher.end.ok()) << watcher.end;
}

TEST(JobManagerTest, AResumeTokenGoesOnBehindWhatWasSeenAndSurvivesARestart) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  RecordingWatcher watcher;
  v1::WatchJobRequest request;
  request.set_job(id);
  ASSERT_TRUE(harness.manager->Watch(request, &watcher).ok());
  request.set_resume_token(watcher.changes.back().resume_token());
  harness.table->Unwatch(&watcher);
  harness.Train();
  harness.Restart();
  RecordingWatcher again;
  ASSERT_TRUE(harness.manager->Watch(request, &again).ok());
  ASSERT_EQ(again.changes.size(), 1u);
  EXPECT_EQ(again.changes[0].job().state(), v1::RUNNING);
  ASSERT_EQ(again.changes[0].events_size(), 1);
  EXPECT_EQ(again.changes[0].events(0).details().at("to"), "RUNNING");
  EXPECT_EQ(agent.starts.size(), 1u);

  request.set_resume_token("elsewhere");
  EXPECT_EQ(ErrorInfoOf(harness.manager->Watch(request, &again)).reason(), "INVALID_RESUME_TOKEN");
}

TEST(JobManagerTest, EventsAreBoundedAndAnOldResumeTokenSaysSo) {
  CoordinatorHarness harness;
  const std::string id = harness.Submit(MakeSpec("tiny", 1));
  RecordingWatcher watcher;
  v1::WatchJobRequest request;
  request.set_job(id);
  ASSERT_TRUE(harness.manager->Watch(request, &watcher).ok());
  request.set_resume_token(watcher.changes.back().resume_token());
  harness.table->Unwatch(&watcher);
  JobEntry& entry = *harness.table->Find(id);
  for (int i = 0; i < 2500; ++i) {
    harness.table->AddEvent(entry, v1::INFO, "TEST", "one of many");
    harness.table->Commit(entry, [](absl::Status) {});
    harness.store->CommitPending();
  }
  EXPECT_EQ(entry.events.size(), 2000u);
  EXPECT_EQ(harness.store->Scan("event/")->size(), 2000u);
  const absl::Status expired = harness.manager->Watch(request, &watcher);
  EXPECT_EQ(expired.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ErrorInfoOf(expired).reason(), "RESUME_TOKEN_EXPIRED");
  const int64_t newest = entry.events.back().sequence();
  harness.Restart();
  harness.Submit(MakeSpec("next", 1));
  EXPECT_GT(harness.table->Find("next")->events.back().sequence(), newest);
}

}  // namespace
}  // namespace muster
