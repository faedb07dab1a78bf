#include "worker/data/sample_source.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace muster {

absl::StatusOr<int64_t> FillBatch(const SampleSource& source, int64_t first_index, absl::Span<int32_t> tokens,
                                  absl::Span<int32_t> targets) {
  const size_t length = static_cast<size_t>(source.sequence_length());
  MUSTER_CHECK(tokens.size() == targets.size() && tokens.size() % length == 0, tokens.size(), " tokens, ",
               targets.size(), " targets, rows of ", length);
  int64_t ignored = 0;
  for (size_t row = 0; row < tokens.size() / length; ++row) {
    const absl::Span<int32_t> row_targets = targets.subspan(row * length, length);
    MUSTER_RETURN_IF_ERROR(
        source.Sample(first_index + static_cast<int64_t>(row), tokens.subspan(row * length, length), row_targets));
    ignored += std::count(row_targets.begin(), row_targets.end(), kIgnoredSampleTarget);
  }
  return static_cast<int64_t>(targets.size()) - ignored;
}

}  // namespace muster
