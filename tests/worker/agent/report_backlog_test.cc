#include "worker/agent/report_backlog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using testing::ElementsAre;

class ReportBacklogTest : public testing::Test {
 protected:
  enum class Kind { kStarted, kStep, kCheckpoint };

  void Add(Kind kind, bool sent) {
    v1::RankReport report;
    report.set_job_id("job-1");
    report.set_sequence(++sequence_);
    if (kind == Kind::kStarted) report.mutable_started();
    if (kind == Kind::kStep) report.mutable_step();
    if (kind == Kind::kCheckpoint) report.mutable_checkpoint();
    backlog_.Add(report, sent);
  }
  std::vector<int64_t> Take() {
    std::vector<int64_t> sequences;
    for (const v1::RankReport& report : backlog_.TakeForNewSession()) sequences.push_back(report.sequence());
    return sequences;
  }

  ReportBacklog backlog_;
  int64_t sequence_ = 0;
};

TEST_F(ReportBacklogTest, RepeatsWhatMattersAndTheNewestStep) {
  Add(Kind::kStarted, true);
  Add(Kind::kStep, true);
  Add(Kind::kStep, true);
  Add(Kind::kCheckpoint, true);
  Add(Kind::kStep, true);
  EXPECT_THAT(Take(), ElementsAre(1, 4, 5));
  EXPECT_THAT(Take(), ElementsAre(1, 4, 5));  // the second session may break as well
}

TEST_F(ReportBacklogTest, KeepsTheStepsOfAnOutage) {
  Add(Kind::kStarted, true);
  Add(Kind::kStep, true);
  Add(Kind::kStep, false);
  Add(Kind::kStep, false);
  EXPECT_THAT(Take(), ElementsAre(1, 3, 4));
  EXPECT_THAT(Take(), ElementsAre(1, 4));
}

TEST_F(ReportBacklogTest, IsBoundedAndNeverDropsTheStart) {
  Add(Kind::kStarted, true);
  for (size_t i = 0; i < 2 * ReportBacklog::kKeptSteps; ++i) Add(Kind::kStep, false);
  for (size_t i = 0; i < 2 * ReportBacklog::kKeptOthers; ++i) Add(Kind::kCheckpoint, false);
  const std::vector<int64_t> sequences = Take();
  EXPECT_EQ(sequences.size(), ReportBacklog::kKeptSteps + ReportBacklog::kKeptOthers);
  EXPECT_EQ(sequences.front(), 1);
  EXPECT_EQ(sequences.back(), sequence_);
}

TEST_F(ReportBacklogTest, ForgetsARankWhoseEndIsAcknowledged) {
  Add(Kind::kStarted, true);
  backlog_.Forget(RankKey{"job-1", 0, 0});
  EXPECT_TRUE(Take().empty());
}

}  // namespace
}  // namespace muster
