#include "worker/agent/log_spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "tests/support/temporary_directory.h"
#include "worker/agent/log_requests.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const RankKey kRank{"job-1", 2, 3};

class LogSpoolTest : public testing::Test {
 protected:
  TemporaryDirectory directory_;
  LogSpool spool_{{.directory = directory_.path(), .bytes_per_rank = 1000, .bytes_total = 3000}};
};

TEST_F(LogSpoolTest, KeepsWholeLinesHoweverTheyWereCut) {
  ASSERT_TRUE(spool_.Begin(kRank).ok());
  spool_.Append(kRank, "one\ntw");
  EXPECT_EQ(*spool_.Tail(kRank, 0), "one\n");
  spool_.Append(kRank, "o\nthree");
  EXPECT_EQ(*spool_.Tail(kRank, 0), "one\ntwo\n");
  EXPECT_THAT(spool_.End(kRank), ElementsAre("one", "two", "three"));
  EXPECT_EQ(*spool_.Tail(kRank, 0), "one\ntwo\nthree\n");
}

TEST_F(LogSpoolTest, TailsTheNewestLines) {
  ASSERT_TRUE(spool_.Begin(kRank).ok());
  for (int i = 0; i < 10; ++i) spool_.Append(kRank, absl::StrCat("line ", i, "\n"));
  EXPECT_EQ(*spool_.Tail(kRank, 2), "line 8\nline 9\n");
  EXPECT_EQ(*spool_.Tail(kRank, 1), "line 9\n");
  EXPECT_THAT(*spool_.Tail(kRank, 100), HasSubstr("line 0\n"));
  EXPECT_FALSE(spool_.Tail(RankKey{"job-1", 2, 4}, 1).ok());
}

TEST_F(LogSpoolTest, NeverTakesMoreThanItsLimitAndKeepsTheNewest) {
  ASSERT_TRUE(spool_.Begin(kRank).ok());
  for (int i = 0; i < 1000; ++i) spool_.Append(kRank, absl::StrCat("line ", i, "\n"));
  const std::string kept = *spool_.Tail(kRank, 0);
  EXPECT_LE(kept.size(), 1000u);
  EXPECT_GT(kept.size(), 500u);
  EXPECT_THAT(kept, testing::EndsWith("line 998\nline 999\n"));
  EXPECT_THAT(kept, testing::StartsWith("line "));
}

TEST_F(LogSpoolTest, CutsALineWithoutEnd) {
  ASSERT_TRUE(spool_.Begin(kRank).ok());
  spool_.Append(kRank, std::string(20000, 'x'));
  EXPECT_EQ(spool_.Tail(kRank, 0)->size(), 20001u);
}

TEST_F(LogSpoolTest, DropsTheOldestAttemptsButNoLivingOne) {
  for (int64_t attempt = 1; attempt <= 6; ++attempt) {
    const RankKey rank{"job-1", attempt, 0};
    ASSERT_TRUE(spool_.Begin(rank).ok());
    spool_.Append(rank, std::string(900, 'x').append("\n"));
    const std::string file = absl::StrCat(directory_.path(), "/job-1/attempt-", attempt, "/rank-0.log");
    std::filesystem::last_write_time(file, std::filesystem::file_time_type(std::chrono::seconds(1000 + attempt)));
    if (attempt > 1) spool_.End(rank);
  }
  EXPECT_TRUE(spool_.Tail({"job-1", 1, 0}, 1).ok());  // it lives
  EXPECT_FALSE(spool_.Tail({"job-1", 2, 0}, 1).ok());
  EXPECT_TRUE(spool_.Tail({"job-1", 6, 0}, 1).ok());
}

TEST_F(LogSpoolTest, SaysWhatTheDiskRefused) {
  ASSERT_TRUE(spool_.Begin(kRank).ok());
  spool_.End(kRank);
  std::filesystem::remove(absl::StrCat(directory_.path(), "/job-1/attempt-2/rank-3.log"));
  directory_.PutFullDevice("job-1/attempt-2/rank-3.log");
  ASSERT_TRUE(spool_.Begin(kRank).ok());
  spool_.Append(kRank, "lost\n");  // no space left on device, and nobody fails for it
  EXPECT_THAT(spool_.End(kRank), ElementsAre("lost"));
}

class LogRequestsTest : public LogSpoolTest {
 protected:
  v1::LogRequest Request(bool follow) {
    v1::LogRequest request;
    request.set_request(7);
    request.set_job_id("job-1");
    request.set_follow(follow);
    return request;
  }
  std::string Data() const {
    std::string data;
    for (const v1::LogReply& reply : replies_) data += reply.chunk().data();
    return data;
  }
  bool Done() const { return !replies_.empty() && replies_.back().done(); }

  std::vector<v1::LogReply> replies_;
  LogRequests requests_{&spool_, "worker-0", [this](v1::LogReply reply) { replies_.push_back(std::move(reply)); }};
};

TEST_F(LogRequestsTest, AnswersWithTheNewestAttemptOfAllRanks) {
  for (const RankKey& rank : {RankKey{"job-1", 1, 0}, RankKey{"job-1", 2, 0}, RankKey{"job-1", 2, 1}}) {
    ASSERT_TRUE(spool_.Begin(rank).ok());
    spool_.Append(rank, rank.ToString() + "\n");
  }
  requests_.Handle(Request(false));
  EXPECT_EQ(Data(), "job-1 attempt 2 rank 0\njob-1 attempt 2 rank 1\n");
  EXPECT_TRUE(Done());
  EXPECT_EQ(replies_[0].chunk().worker(), "worker-0");
  EXPECT_EQ(replies_[0].request(), 7);
}

TEST_F(LogRequestsTest, FollowsUntilEveryRankHasEnded) {
  const RankKey first{"job-1", 1, 0};
  const RankKey second{"job-1", 1, 1};
  ASSERT_TRUE(spool_.Begin(first).ok());
  ASSERT_TRUE(spool_.Begin(second).ok());
  spool_.Append(first, "before\n");
  requests_.Handle(Request(true));
  spool_.Append(second, "after\npart");
  EXPECT_EQ(Data(), "before\nafter\n");
  spool_.End(first);
  EXPECT_FALSE(Done());
  spool_.End(second);
  EXPECT_EQ(Data(), "before\nafter\npart\n");
  EXPECT_TRUE(Done());
}

TEST_F(LogRequestsTest, StopsFollowingWhenCancelled) {
  ASSERT_TRUE(spool_.Begin(kRank).ok());
  requests_.Handle(Request(true));
  v1::LogRequest cancel;
  cancel.set_request(7);
  cancel.set_cancel(true);
  requests_.Handle(cancel);
  spool_.Append(kRank, "nobody listens\n");
  EXPECT_EQ(Data(), "");
}

TEST_F(LogRequestsTest, CutsALongLogIntoChunksOfWholeLines) {
  LogSpool spool({.directory = directory_.File("large"), .bytes_per_rank = 4 << 20});
  std::vector<v1::LogReply> replies;
  LogRequests requests(&spool, "worker-0", [&](v1::LogReply reply) { replies.push_back(std::move(reply)); });
  ASSERT_TRUE(spool.Begin(kRank).ok());
  for (int i = 0; i < 10000; ++i) spool.Append(kRank, std::string(99, 'x') + "\n");
  requests.Handle(Request(false));
  ASSERT_GT(replies.size(), 2u);
  for (const v1::LogReply& reply : replies) EXPECT_EQ(reply.chunk().data().size() % 100, 0u);
}

}  // namespace
}  // namespace muster
