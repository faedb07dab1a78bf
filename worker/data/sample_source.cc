#include "worker/data/sample_source.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace muster {

SampleRows Subrows(const SampleRows& rows, size_t first, size_t count, size_t length) {
  const auto part = [&](absl::Span<int32_t> all) {
    return all.empty() ? all : all.subspan(first * length, count * length);
  };
  return {part(rows.tokens), part(rows.targets), part(rows.document_starts)};
}

absl::StatusOr<int64_t> FillBatch(const SampleSource& source, int64_t first_index, const SampleRows& rows) {
  const size_t length = static_cast<size_t>(source.sequence_length());
  MUSTER_CHECK(rows.tokens.size() == rows.targets.size() && rows.tokens.size() % length == 0, rows.tokens.size(),
               " tokens, ", rows.targets.size(), " targets, rows of ", length);
  for (size_t row = 0; row < rows.tokens.size() / length; ++row) {
    MUSTER_RETURN_IF_ERROR(source.Sample(first_index + static_cast<int64_t>(row), Subrows(rows, row, 1, length)));
  }
  const auto ignored = std::count(rows.targets.begin(), rows.targets.end(), kIgnoredSampleTarget);
  return static_cast<int64_t>(rows.targets.size()) - ignored;
}

void FillIgnored(const SampleRows& rows) {
  std::fill(rows.tokens.begin(), rows.tokens.end(), 0);
  std::fill(rows.targets.begin(), rows.targets.end(), kIgnoredSampleTarget);
  std::fill(rows.document_starts.begin(), rows.document_starts.end(), 0);
}

}  // namespace muster
