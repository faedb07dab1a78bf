#include "server/job/metric_history.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace muster {
namespace {

v1::Job At(int64_t step) {
  v1::Job job;
  job.mutable_progress()->set_step(step);
  job.mutable_progress()->set_loss(100.0 / static_cast<double>(step));
  job.mutable_progress()->mutable_phases()->set_forward(0.25);
  return job;
}

void Train(MetricHistory& history, int64_t first, int64_t last) {
  for (int64_t step = first; step <= last; ++step) history.Add(At(step), 0.5, 64, step * 1'000'000);
}

v1::MetricSeries Losses(const MetricHistory& history, size_t most_points = 1'000'000) {
  v1::QueryMetricsRequest request;
  request.add_names("muster_job_loss");
  v1::QueryMetricsResponse response;
  history.Read(request, most_points, &response);
  return response.series_size() == 1 ? response.series(0) : v1::MetricSeries();
}

TEST(MetricHistory, KeepsEveryStepWithTimeAndUnit) {
  MetricHistory history;
  Train(history, 1, 100);
  const v1::MetricSeries losses = Losses(history);
  ASSERT_EQ(losses.points_size(), 100);
  EXPECT_EQ(losses.unit(), "nats per token");
  EXPECT_EQ(losses.points(49).step(), 50);
  EXPECT_EQ(losses.points(49).value(), 2.0);
  EXPECT_EQ(losses.points(49).time().seconds(), 50);
  EXPECT_EQ(history.stride(), 1);
}

TEST(MetricHistory, AllSeriesAreThereWhenNoneIsNamed) {
  MetricHistory history;
  Train(history, 1, 3);
  v1::QueryMetricsResponse response;
  history.Read({}, 10, &response);
  EXPECT_EQ(static_cast<size_t>(response.series_size()), MetricColumns().size());
  for (const v1::MetricSeries& series : response.series()) {
    if (series.name() == "muster_job_tokens_per_second") {
      EXPECT_EQ(series.points(0).value(), 128);
    }
    if (series.labels().count("phase") > 0 && series.labels().at("phase") == "forward") {
      EXPECT_EQ(series.points(0).value(), 0.25);
    }
  }
}

TEST(MetricHistory, BeyondItsRoomEverySecondStepGoesAndWhatStaysIsItsOwn) {
  MetricHistory history;
  const auto most = static_cast<int64_t>(MetricHistory::kMostRows);
  Train(history, 1, 2 * most + 1);
  EXPECT_EQ(history.stride(), 4);
  EXPECT_LE(history.rows(), MetricHistory::kMostRows);
  const v1::MetricSeries losses = Losses(history);
  for (int i = 0; i + 1 < losses.points_size(); ++i) {
    EXPECT_EQ(losses.points(i).step(), 4 * (i + 1));
    EXPECT_EQ(losses.points(i).value(), 100.0 / static_cast<double>(losses.points(i).step()));
  }
  EXPECT_EQ(losses.points().rbegin()->step(), 2 * most + 1) << "the newest is always there";
}

TEST(MetricHistory, AStepThatIsDoneAgainTakesWhatCameBehindItWithIt) {
  MetricHistory history;
  Train(history, 1, 50);
  Train(history, 31, 40);
  EXPECT_EQ(Losses(history).points_size(), 40);
}

TEST(MetricHistory, IsThinnedEvenlyToThePointsAskedFor) {
  MetricHistory history;
  Train(history, 1, 101);
  const v1::MetricSeries losses = Losses(history, 11);
  ASSERT_EQ(losses.points_size(), 11);
  for (int i = 0; i < 11; ++i) EXPECT_EQ(losses.points(i).step(), 1 + 10 * i);
}

TEST(MetricHistory, ComesBackFromItsChunksAndOnlyThoseThatChangedAreWritten) {
  MetricHistory history;
  const auto rows = static_cast<int64_t>(MetricHistory::kChunkRows);
  Train(history, 1, 2 * rows + 10);
  EXPECT_EQ(history.TakeChanged().size(), 3u);
  EXPECT_TRUE(history.TakeChanged().empty());
  Train(history, 2 * rows + 11, 2 * rows + 12);
  EXPECT_EQ(history.TakeChanged(), std::vector<size_t>{2});
  MetricHistory restored;
  for (size_t chunk = 0; chunk < history.chunks(); ++chunk) restored.Restore(history.Chunk(chunk));
  EXPECT_EQ(Losses(restored).SerializeAsString(), Losses(history).SerializeAsString());
}

TEST(MetricHistory, AColumnThatAnEarlierVersionDidNotHaveIsNotANumber) {
  MetricHistory history;
  Train(history, 1, 1);
  server::MetricChunk chunk = history.Chunk(0);
  chunk.set_names(0, "muster_job_something_else");
  MetricHistory restored;
  restored.Restore(chunk);
  EXPECT_TRUE(std::isnan(Losses(restored).points(0).value()));
}

}  // namespace
}  // namespace muster
