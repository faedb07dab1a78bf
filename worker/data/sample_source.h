// Where training and validation sequences come from. The loader asks for sample i and knows nothing of files.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace muster {

// The target of a position at which nothing is to be predicted; equal to kernels::kIgnoredTarget.
inline constexpr int32_t kIgnoredSampleTarget = -1;

// Immutable after construction: any thread may call, also several at once.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual int64_t sequence_length() const = 0;  // tokens of one sample

  // Writes sample `index` (from 0): tokens[t], and targets[t] the token that follows it, kIgnoredSampleTarget where
  // nothing is to be predicted. A pure function of the index: no call depends on an earlier one, which is what makes a
  // resumed run see the same data. REQUIRES: both spans are sequence_length() long.
  virtual absl::Status Sample(int64_t index, absl::Span<int32_t> tokens, absl::Span<int32_t> targets) const = 0;
};

// Samples first_index, first_index + 1, ... row by row into tokens and targets (rows, sequence_length); returns how
// many targets count. REQUIRES: both spans have the same length, a multiple of sequence_length().
absl::StatusOr<int64_t> FillBatch(const SampleSource& source, int64_t first_index, absl::Span<int32_t> tokens,
                                  absl::Span<int32_t> targets);

}  // namespace muster
