// Sums fp32 gradients over the ranks of a data-parallel group, bucket by bucket, while the caller computes what goes
// into the next one.
//
// Each element is added in rank order, ((g0 + g1) + g2) + ..., whatever the buckets, the place of the element and the
// back-end; a library's all-reduce gives up to `size` different results by position. Per bucket: an all-to-all in which
// each rank gets its part from all others, the sum, and, unless the sums stay where they were made, an exchange of the
// sums: 2 (size - 1) / size of the bucket sent by each rank, as a ring does.
//
// Owned by the engine of a rank, for the thread that trains.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/comm/communicator.h"

namespace muster {

// A run of memory, the same one on every rank of the group.
struct GradientRun {
  float* data = nullptr;
  int64_t elements = 0;

  int64_t bytes() const { return elements * static_cast<int64_t>(sizeof(float)); }
};

// What is reduced together: segments, each with the run that rank r of the group sums, by rank.
using GradientBucket = std::vector<std::vector<GradientRun>>;

// out[i] = ((parts[0][i] + parts[1][i]) + parts[2][i]) + ... for i < elements, in fp32. `out` is one of the parts; the
// others may be overwritten. It sums where the gradients lie, and is done, or ordered before the group's next Exchange,
// when it returns.
using SumParts = std::function<void(absl::Span<float* const> parts, float* out, int64_t elements)>;

class GradientReducer {
 public:
  struct Options {
    // Whether every rank ends with all sums. Otherwise each run is right on the rank that sums it only.
    bool gather = true;
    SumParts sum;
  };

  // `scratch`, which lies where the gradients do, holds two buckets' parts from the other ranks: 2 (size - 1) times the
  // most elements that one rank sums of a bucket. `group` and all memory outlive the reducer.
  GradientReducer(Communicator& group, absl::Span<float> scratch, Options options);

  // Begins to reduce a bucket, whose memory is the reducer's until Finish. Returns at once while fewer than two buckets
  // are on their way, and else when the oldest has arrived and is summed. Every rank calls with the same buckets in the
  // same order. `bucket` outlives the next Finish. Errors are the communicator's.
  absl::Status Start(const GradientBucket& bucket);

  // Until all buckets are reduced.
  absl::Status Finish();

 private:
  struct InFlight {
    const GradientBucket* bucket = nullptr;
    int half = 0;  // of the scratch
    Ticket scattered = 0;
  };

  absl::Status SumOldest();
  absl::Status Gather(const GradientBucket& bucket);
  // Where the part of our run arrives from `peer`; `offset` is that of the run among our runs of the bucket, whose
  // elements are `total`.
  float* PartFrom(int half, int peer, int64_t offset, int64_t total) const;
  const GradientRun& Own(const std::vector<GradientRun>& segment) const;
  int64_t OwnElements(const GradientBucket& bucket) const;

  Communicator& group_;
  const Options options_;
  const int64_t half_elements_;  // of the scratch
  std::array<float*, 2> halves_{};
  int next_half_ = 0;
  std::deque<InFlight> in_flight_;
  std::vector<Ticket> gathered_;  // not waited for yet
};

}  // namespace muster
