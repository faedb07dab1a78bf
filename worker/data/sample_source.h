// Where training and validation sequences come from. The loader asks for sample i and knows nothing of files.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace muster {

// The target of a position at which nothing is to be predicted; equal to kernels::kIgnoredTarget.
inline constexpr int32_t kIgnoredSampleTarget = -1;

// Where samples are written, each (rows, sequence_length).
struct SampleRows {
  absl::Span<int32_t> tokens;
  absl::Span<int32_t> targets;  // of a position: the token that follows it, or kIgnoredSampleTarget
  // Of a position: the first position of its row that belongs to the same document, which is the first that it may
  // attend to. Empty where documents are not masked from each other.
  absl::Span<int32_t> document_starts;
};

// Immutable after construction: any thread may call, also several at once.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual int64_t sequence_length() const = 0;  // tokens of one sample

  // Writes sample `index` (from 0) into one row. A pure function of the index: no call depends on an earlier one, which
  // is what makes a resumed run see the same data. REQUIRES: the row is sequence_length() long.
  virtual absl::Status Sample(int64_t index, const SampleRows& row) const = 0;
};

// Samples first_index, first_index + 1, ... row by row; returns how many targets count.
// REQUIRES: the rows are a multiple of sequence_length() long.
absl::StatusOr<int64_t> FillBatch(const SampleSource& source, int64_t first_index, const SampleRows& rows);

// Rows [first, first + count) of rows of `length` positions.
SampleRows Subrows(const SampleRows& rows, size_t first, size_t count, size_t length);

// Makes every position one at which nothing is to be predicted.
void FillIgnored(const SampleRows& rows);

}  // namespace muster
