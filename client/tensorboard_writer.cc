#include "client/tensorboard_writer.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/crc32c.h"
#include "tensorboard/event.pb.h"

namespace muster {
namespace {

void AppendLittleEndian(uint64_t value, int bytes, std::string& out) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

uint32_t Masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

double Seconds(const google::protobuf::Timestamp& time) {
  return static_cast<double>(time.seconds()) + 1e-9 * time.nanos();
}

}  // namespace

std::string TfRecord(absl::string_view payload) {
  std::string record;
  AppendLittleEndian(payload.size(), 8, record);
  AppendLittleEndian(Masked(Crc32c(record)), 4, record);
  absl::StrAppend(&record, payload);
  AppendLittleEndian(Masked(Crc32c(payload)), 4, record);
  return record;
}

std::string TagOf(const v1::MetricSeries& series) {
  std::string tag(absl::StripPrefix(series.name(), "muster_job_"));
  for (const auto& label : series.labels()) absl::StrAppend(&tag, "/", label.second);
  return tag;
}

std::string TensorBoardFile(const v1::QueryMetricsResponse& metrics) {
  std::map<int64_t, tensorboard::Event> events;  // by step
  double last_time = 0;
  for (const v1::MetricSeries& series : metrics.series()) {
    for (const v1::MetricPoint& point : series.points()) {
      tensorboard::Event& event = events[point.step()];
      event.set_step(point.step());
      if (point.has_time()) event.set_wall_time(Seconds(point.time()));
      tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
      value->set_tag(TagOf(series));
      value->set_simple_value(static_cast<float>(point.value()));
    }
  }
  for (const auto& event : events) {
    if (event.second.wall_time() > 0) {
      last_time = event.second.wall_time();
      break;
    }
  }
  tensorboard::Event version;
  version.set_wall_time(last_time);
  version.set_file_version("brain.Event:2");
  std::string file = TfRecord(version.SerializeAsString());
  for (auto& event : events) {
    // A validation before the first step has no time of its own: that of its neighbour.
    if (event.second.wall_time() == 0) event.second.set_wall_time(last_time);
    last_time = event.second.wall_time();
    absl::StrAppend(&file, TfRecord(event.second.SerializeAsString()));
  }
  return file;
}

}  // namespace muster
