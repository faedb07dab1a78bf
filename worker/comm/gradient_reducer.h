// Sums a contiguous region of fp32 gradients over the ranks of a data-parallel group, so that every rank ends with the
// same bits.
//
// Each element is added in rank order, ((g0 + g1) + g2) + ..., whatever the bucket size, the place of the element and
// the back-end; a library's all-reduce gives up to `size` different results by position. Per bucket: an all-to-all in
// which each rank gets its chunk from all others, the sum, and an all-gather of the sums: 2 (size - 1) / size of the
// region sent by each rank, as a ring does.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/plan/device_constants.h"
#include "worker/comm/communicator.h"

namespace muster {

// out[i] = ((parts[0][i] + parts[1][i]) + parts[2][i]) + ... for i < elements, in fp32. `out` may be one of the parts.
using SumParts = std::function<void(absl::Span<const float* const> parts, float* out, int64_t elements)>;

// On the host.
void SumPartsOnHost(absl::Span<const float* const> parts, float* out, int64_t elements);

struct GradientReducerOptions {
  // Elements reduced together. Larger buckets cost scratch, smaller ones latency; the result's bits stay the same.
  int64_t bucket_elements = kReductionBucketElements;

  // Must sum where the region lies and be done, or ordered before the group's next Exchange, when it returns.
  SumParts sum = SumPartsOnHost;
};

// Blocks. `scratch` is overwritten and lies where the region does.
// REQUIRES: scratch holds GradientReducerScratchBytes(region.size(), group.size(), options.bucket_elements)
// (common/plan/device_constants.h). All ranks call with the same sizes. Errors are the communicator's.
absl::Status SumGradients(Communicator& group, absl::Span<float> region, absl::Span<float> scratch,
                          const GradientReducerOptions& options = {});

}  // namespace muster
