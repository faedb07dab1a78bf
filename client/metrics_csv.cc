#include "client/metrics_csv.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/tensorboard_writer.h"
#include "common/rpc/proto_time.h"

namespace muster {

std::string MetricsCsv(const v1::QueryMetricsResponse& metrics) {
  struct Row {
    std::string time;
    std::vector<std::string> values;
  };
  std::map<int64_t, Row> rows;  // by step
  std::string text = "step,time";
  for (int column = 0; column < metrics.series_size(); ++column) {
    absl::StrAppend(&text, ",", TagOf(metrics.series(column)));
    for (const v1::MetricPoint& point : metrics.series(column).points()) {
      Row& row = rows[point.step()];
      row.values.resize(static_cast<size_t>(metrics.series_size()));
      row.values[static_cast<size_t>(column)] = absl::StrFormat("%.9g", point.value());
      if (point.has_time()) {
        row.time = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", FromProto(point.time()), absl::UTCTimeZone());
      }
    }
  }
  text += "\n";
  for (const auto& item : rows) {
    absl::StrAppend(&text, item.first, ",", item.second.time);
    for (const std::string& value : item.second.values) absl::StrAppend(&text, ",", value);
    text += "\n";
  }
  return text;
}

}  // namespace muster
