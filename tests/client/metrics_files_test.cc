// The files of `muster metrics export`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "client/metrics_csv.h"
#include "client/tensorboard_writer.h"

namespace muster {
namespace {

v1::QueryMetricsResponse TwoSteps() {
  v1::QueryMetricsResponse metrics;
  v1::MetricSeries* loss = metrics.add_series();
  loss->set_name("muster_job_loss");
  for (int64_t step = 1; step <= 2; ++step) {
    v1::MetricPoint* point = loss->add_points();
    point->set_step(step);
    point->mutable_time()->set_seconds(1767225600 + step);
    point->set_value(0.5 * static_cast<double>(step));
  }
  v1::MetricSeries* forward = metrics.add_series();
  forward->set_name("muster_job_phase_seconds");
  (*forward->mutable_labels())["phase"] = "forward";
  *forward->add_points() = loss->points(1);
  return metrics;
}

TEST(TfRecord, IsLengthAndPayloadEachWithItsMaskedChecksum) {
  // What TensorFlow's own writer makes of the same bytes.
  EXPECT_EQ(absl::BytesToHexString(TfRecord("")),
            "0000000000000000"
            "29039807"
            "d8ea82a2");
}

TEST(TensorBoardFile, HasAVersionAndThenAnEventForEachStep) {
  // Golden bytes, read by TensorBoard 2's EventFileLoader when they were made (tests/integration/tensorboard_check.py).
  const std::string file = TensorBoardFile(TwoSteps());
  size_t at = 0;
  std::vector<std::string> payloads;
  while (at < file.size()) {
    size_t size = 0;
    for (int i = 0; i < 8; ++i) size |= static_cast<size_t>(static_cast<unsigned char>(file[at + i])) << (8 * i);
    payloads.push_back(file.substr(at + 12, size));
    EXPECT_EQ(TfRecord(payloads.back()), file.substr(at, size + 16));
    at += size + 16;
  }
  ASSERT_EQ(payloads.size(), 3u);
  // wall_time is field 1 (double), step 2, file_version 3, summary 5; in it value is 1, with tag 1 and simple_value 2.
  EXPECT_EQ(absl::BytesToHexString(payloads[0]),
            "09"
            "000040406e55da41"
            "1a0d"
            "627261696e2e4576656e743a32");
  EXPECT_EQ(absl::BytesToHexString(payloads[1]),
            "09"
            "000040406e55da41"
            "1001"
            "2a0d"
            "0a0b"
            "0a046c6f7373"
            "150000003f");
  EXPECT_THAT(payloads[2], testing::HasSubstr("phase_seconds/forward"));
}

TEST(MetricsCsv, HasARowForEachStepAndNothingWhereASeriesHasNoValue) {
  EXPECT_EQ(MetricsCsv(TwoSteps()),
            "step,time,loss,phase_seconds/forward\n"
            "1,2026-01-01T00:00:01.000Z,0.5,\n"
            "2,2026-01-01T00:00:02.000Z,1,1\n");
}

}  // namespace
}  // namespace muster
