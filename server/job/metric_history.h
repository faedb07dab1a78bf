// The figures of a job's steps, kept for as long as the job is known: every step while there are at most kMostRows,
// then every second one, every fourth and so on. What is kept of a step is its own figures, never a mean over several.
//
// Pure; thread-compatible.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "muster/v1/job.pb.h"
#include "server/store/records.pb.h"

namespace muster {

// One column of the history. `label` is empty, or a value of `label_name`.
struct MetricColumn {
  const char* name;
  const char* label_name;
  const char* label;
  const char* unit;
};
absl::Span<const MetricColumn> MetricColumns();

class MetricHistory {
 public:
  // A row is 160 bytes, so a job's history has at most 1.3 MB. Steps of an afternoon at a step a second are all there.
  static constexpr size_t kMostRows = 8192;
  // Rows of one record of the store.
  static constexpr size_t kChunkRows = 256;

  // Takes the newest step's figures from the job. A step that is done again, after a recovery or a rewind, takes with
  // it all that came behind it.
  void Add(const v1::Job& job, double step_seconds, int64_t step_tokens, int64_t unix_micros);

  // Series of these names (empty: all) with the steps of the range, `to` 0: to the newest, thinned to `most_points`
  // evenly, the first and the last step among them.
  void Read(const v1::QueryMetricsRequest& request, size_t most_points, v1::QueryMetricsResponse* response) const;

  // Chunk i holds the rows from i x kChunkRows on. Indices of those that changed since they were last asked for.
  std::vector<size_t> TakeChanged();
  size_t chunks() const { return (rows_.size() + kChunkRows - 1) / kChunkRows; }
  server::MetricChunk Chunk(size_t index) const;
  // In the order of the chunks. Columns that this version does not know are left out.
  void Restore(const server::MetricChunk& chunk);

  int64_t stride() const { return stride_; }
  size_t rows() const { return rows_.size(); }

 private:
  void Thin();
  void MarkChanged(size_t row);

  std::vector<server::MetricRow> rows_;  // by step
  int64_t stride_ = 1;
  size_t first_changed_ = 0;  // chunk
  bool changed_ = false;
};

}  // namespace muster
