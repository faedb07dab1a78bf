#include "server/job/metric_history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr MetricColumn kColumns[] = {
    {"muster_job_loss", "", "", "nats per token"},
    {"muster_job_gradient_norm", "", "", ""},
    {"muster_job_learning_rate", "", "", ""},
    {"muster_job_step_seconds", "", "", "seconds"},
    {"muster_job_tokens_per_second", "", "", "tokens per second"},
    {"muster_job_resident_bytes", "", "", "bytes"},
    {"muster_job_skipped_steps", "", "", "steps"},
    {"muster_job_phase_seconds", "phase", "forward", "seconds"},
    {"muster_job_phase_seconds", "phase", "backward", "seconds"},
    {"muster_job_phase_seconds", "phase", "optimizer", "seconds"},
    {"muster_job_phase_seconds", "phase", "comm_exposed", "seconds"},
    {"muster_job_phase_seconds", "phase", "bubble", "seconds"},
    {"muster_job_phase_seconds", "phase", "data_wait", "seconds"},
    {"muster_job_phase_seconds", "phase", "checkpoint", "seconds"},
    {"muster_job_phase_seconds", "phase", "other", "seconds"},
};

std::string Key(const MetricColumn& column) {
  return column.label[0] == '\0' ? column.name : absl::StrCat(column.name, "/", column.label);
}

bool Wanted(const v1::QueryMetricsRequest& request, const char* name) {
  return request.names().empty() ||
         std::find(request.names().begin(), request.names().end(), name) != request.names().end();
}

void AddPoint(const server::MetricRow& row, double value, v1::MetricSeries* series) {
  v1::MetricPoint* point = series->add_points();
  point->set_step(row.step());
  point->mutable_time()->set_seconds(row.unix_micros() / 1'000'000);
  point->mutable_time()->set_nanos(static_cast<int32_t>(row.unix_micros() % 1'000'000 * 1000));
  point->set_value(value);
}

}  // namespace

absl::Span<const MetricColumn> MetricColumns() { return kColumns; }

void MetricHistory::Add(const v1::Job& job, double step_seconds, int64_t step_tokens, int64_t unix_micros) {
  const v1::JobProgress& progress = job.progress();
  const auto behind = std::lower_bound(rows_.begin(), rows_.end(), progress.step(),
                                       [](const server::MetricRow& row, int64_t step) { return row.step() < step; });
  MarkChanged(static_cast<size_t>(behind - rows_.begin()));
  rows_.erase(behind, rows_.end());
  // The newest is always there; it goes when the next comes, unless its step is one of those that stay.
  if (!rows_.empty() && rows_.back().step() % stride_ != 0) {
    MarkChanged(rows_.size() - 1);
    rows_.pop_back();
  }
  int64_t resident = 0;
  for (const v1::RankStatus& rank : job.ranks()) resident = std::max(resident, rank.resident_bytes());
  server::MetricRow& row = rows_.emplace_back();
  row.set_step(progress.step());
  row.set_unix_micros(unix_micros);
  const v1::PhaseSeconds& phases = progress.phases();
  for (const double value :
       {progress.loss(), progress.gradient_norm(), progress.learning_rate(), step_seconds,
        step_seconds > 0 ? static_cast<double>(step_tokens) / step_seconds : 0, static_cast<double>(resident),
        static_cast<double>(progress.skipped_steps()), phases.forward(), phases.backward(), phases.optimizer(),
        phases.comm_exposed(), phases.bubble(), phases.data_wait(), phases.checkpoint(), phases.other()}) {
    row.add_values(value);
  }
  if (rows_.size() > kMostRows) Thin();
}

void MetricHistory::Thin() {
  stride_ *= 2;
  const auto goes = [this](const server::MetricRow& row) {
    return row.step() % stride_ != 0 && row.step() != rows_.back().step();
  };
  rows_.erase(std::remove_if(rows_.begin(), std::prev(rows_.end()), goes), std::prev(rows_.end()));
  MarkChanged(0);
}

void MetricHistory::MarkChanged(size_t row) {
  const size_t chunk = row / kChunkRows;
  first_changed_ = changed_ ? std::min(first_changed_, chunk) : chunk;
  changed_ = true;
}

void MetricHistory::Read(const v1::QueryMetricsRequest& request, size_t most_points,
                         v1::QueryMetricsResponse* response) const {
  std::vector<const server::MetricRow*> rows;
  for (const server::MetricRow& row : rows_) {
    if (row.step() >= request.from_step() && (request.to_step() == 0 || row.step() <= request.to_step())) {
      rows.push_back(&row);
    }
  }
  const size_t points = std::min(rows.size(), most_points);
  std::vector<const server::MetricRow*> shown;
  for (size_t i = 0; i < points; ++i) {
    shown.push_back(rows[points < 2 ? rows.size() - 1 : i * (rows.size() - 1) / (points - 1)]);
  }
  for (size_t column = 0; column < std::size(kColumns); ++column) {
    if (!Wanted(request, kColumns[column].name) || shown.empty()) continue;
    v1::MetricSeries* series = response->add_series();
    series->set_name(kColumns[column].name);
    series->set_unit(kColumns[column].unit);
    if (kColumns[column].label[0] != '\0')
      (*series->mutable_labels())[kColumns[column].label_name] = kColumns[column].label;
    for (const server::MetricRow* row : shown) AddPoint(*row, row->values(static_cast<int>(column)), series);
  }
  response->set_stride(stride_);
}

std::vector<size_t> MetricHistory::TakeChanged() {
  std::vector<size_t> changed;
  if (!std::exchange(changed_, false)) return changed;
  for (size_t chunk = first_changed_; chunk < chunks(); ++chunk) changed.push_back(chunk);
  return changed;
}

server::MetricChunk MetricHistory::Chunk(size_t index) const {
  server::MetricChunk chunk;
  for (const MetricColumn& column : kColumns) chunk.add_names(Key(column));
  chunk.set_stride(stride_);
  const size_t end = std::min(rows_.size(), (index + 1) * kChunkRows);
  for (size_t row = index * kChunkRows; row < end; ++row) *chunk.add_rows() = rows_[row];
  return chunk;
}

void MetricHistory::Restore(const server::MetricChunk& chunk) {
  std::vector<int> columns;  // of the chunk, by ours; -1: it has none
  for (const MetricColumn& column : kColumns) {
    const auto found = std::find(chunk.names().begin(), chunk.names().end(), Key(column));
    columns.push_back(found == chunk.names().end() ? -1 : static_cast<int>(found - chunk.names().begin()));
  }
  stride_ = std::max<int64_t>(chunk.stride(), 1);
  for (const server::MetricRow& stored : chunk.rows()) {
    if (!rows_.empty() && stored.step() <= rows_.back().step()) continue;  // what a longer history left behind
    server::MetricRow& row = rows_.emplace_back();
    row.set_step(stored.step());
    row.set_unix_micros(stored.unix_micros());
    for (const int column : columns) {
      const bool known = column >= 0 && column < stored.values_size();
      row.add_values(known ? stored.values(column) : std::numeric_limits<double>::quiet_NaN());
    }
  }
}

}  // namespace muster
