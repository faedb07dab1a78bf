#include "worker/agent/exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::Not;

class ExporterTest : public testing::Test {
 protected:
  ExporterTest() {
    assignment_.set_job_id("job-1");
    assignment_.set_attempt(1);
    assignment_.set_rank(3);
    assignment_.mutable_resolved_spec()->set_name("quick");
    assignment_.mutable_resolved_spec()->mutable_parallelism()->set_data(2);
  }

  void Step(int64_t step, double loss, bool leader = true) {
    v1::RankReport report;
    v1::StepReport& message = *report.mutable_step();
    message.set_step(step);
    message.set_loss(loss);
    message.set_tokens(1000);
    message.set_seconds(0.5);
    message.mutable_phases()->set_forward(0.2);
    message.mutable_phases()->set_comm_exposed(0.1);
    message.set_leader(leader);
    exporter_.OnReport(assignment_, report);
  }

  FakeClock clock_;
  EventLoop loop_{&clock_};
  Exporter exporter_{&loop_, &clock_, absl::Minutes(2), "9.9.9"};
  v1::Assignment assignment_;
};

TEST_F(ExporterTest, ShowsTheJobAsItsLeaderReportsIt) {
  exporter_.OnRankStarted(assignment_, 1 << 20);
  Step(1, 4.5);
  EXPECT_THAT(exporter_.Text(), HasSubstr("muster_job_tokens_per_second{job_id=\"job-1\",job_name=\"quick\"} 2000"));
  clock_.Advance(absl::Seconds(4));  // a checkpoint was in between: it counts
  Step(2, 4.25);
  const std::string text = exporter_.Text();
  EXPECT_THAT(text, HasSubstr("muster_job_step{job_id=\"job-1\",job_name=\"quick\"} 2"));
  EXPECT_THAT(text, HasSubstr("muster_job_loss{job_id=\"job-1\",job_name=\"quick\"} 4.25"));
  EXPECT_THAT(text, HasSubstr("muster_job_tokens_per_second{job_id=\"job-1\",job_name=\"quick\"} 250"));
  EXPECT_THAT(text, HasSubstr("muster_job_attempts_total{job_id=\"job-1\",job_name=\"quick\"} 1"));
  EXPECT_THAT(text, HasSubstr("muster_build_info{version=\"9.9.9\"} 1"));
}

TEST_F(ExporterTest, CountsStepsTokensAndPhasesOfEachRank) {
  exporter_.OnRankStarted(assignment_, 1 << 20);
  Step(1, 4.5, /*leader=*/false);
  Step(2, 4.5, /*leader=*/false);
  const std::string text = exporter_.Text();
  EXPECT_THAT(text, HasSubstr("muster_rank_steps_total{job_id=\"job-1\",rank=\"3\"} 2"));
  EXPECT_THAT(text, HasSubstr("muster_rank_tokens_total{job_id=\"job-1\",rank=\"3\"} 1000"));  // half of each step's
  EXPECT_THAT(text, HasSubstr("phase=\"comm_exposed\",rank=\"3\"} 0.2"));
  EXPECT_THAT(text, HasSubstr("muster_rank_memory_limit_bytes{job_id=\"job-1\",rank=\"3\"} 1048576"));
  EXPECT_THAT(text, Not(HasSubstr("muster_job_loss{")));
}

TEST_F(ExporterTest, ShowsPlannedAndUsedMemoryByCategory) {
  exporter_.OnRankStarted(assignment_, 0);
  v1::RankReport report;
  report.mutable_started()->mutable_planned()->set_optimizer_state(100);
  report.mutable_started()->mutable_used()->set_optimizer_state(100);
  exporter_.OnReport(assignment_, report);
  EXPECT_THAT(exporter_.Text(),
              HasSubstr("category=\"optimizer_state\",job_id=\"job-1\",kind=\"planned\",rank=\"3\"} 100"));
  EXPECT_THAT(exporter_.Text(),
              HasSubstr("category=\"optimizer_state\",job_id=\"job-1\",kind=\"used\",rank=\"3\"} 100"));
}

TEST_F(ExporterTest, ARankThatEndedHasNoResidentMemory) {
  exporter_.OnRankStarted(assignment_, 0);
  exporter_.OnResident(RankKey::Of(assignment_), 4096);
  EXPECT_THAT(exporter_.Text(), HasSubstr("muster_rank_process_resident_bytes{job_id=\"job-1\",rank=\"3\"} 4096"));
  exporter_.OnRankEnded(RankKey::Of(assignment_));
  EXPECT_THAT(exporter_.Text(), HasSubstr("muster_rank_process_resident_bytes{job_id=\"job-1\",rank=\"3\"} 0\n"));
}

TEST_F(ExporterTest, RemovesAJobTwoMinutesAfterItEnded) {
  exporter_.OnRankStarted(assignment_, 0);
  Step(1, 4.5);
  exporter_.OnRankEnded(RankKey::Of(assignment_));
  clock_.Advance(absl::Seconds(119));
  loop_.RunReady();
  EXPECT_THAT(exporter_.Text(), HasSubstr("job-1"));
  clock_.Advance(absl::Seconds(2));
  loop_.RunReady();
  EXPECT_THAT(exporter_.Text(), Not(HasSubstr("job-1")));
}

TEST_F(ExporterTest, ARecoveredJobKeepsItsSeriesAndCountsOn) {
  exporter_.OnRankStarted(assignment_, 0);
  Step(1, 4.5);
  exporter_.OnRankEnded(RankKey::Of(assignment_));
  clock_.Advance(absl::Seconds(1));
  assignment_.set_attempt(2);
  exporter_.OnRankStarted(assignment_, 0);
  clock_.Advance(absl::Minutes(10));
  loop_.RunReady();
  Step(2, 4.0);
  EXPECT_THAT(exporter_.Text(), HasSubstr("muster_rank_steps_total{job_id=\"job-1\",rank=\"3\"} 2"));
  EXPECT_THAT(exporter_.Text(), HasSubstr("muster_job_attempts_total{job_id=\"job-1\",job_name=\"quick\"} 2"));
}

TEST_F(ExporterTest, ALateReportOfAnOldAttemptChangesNothing) {
  exporter_.OnRankStarted(assignment_, 0);
  assignment_.set_attempt(2);
  exporter_.OnRankStarted(assignment_, 0);
  assignment_.set_attempt(1);
  Step(7, 9.0);
  EXPECT_THAT(exporter_.Text(), Not(HasSubstr("muster_job_step{")));
}

}  // namespace
}  // namespace muster
