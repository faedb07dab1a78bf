#include "worker/comm/gradient_reducer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// A run of the region.
struct Chunk {
  float* data = nullptr;
  int64_t elements = 0;

  int64_t bytes() const { return elements * static_cast<int64_t>(sizeof(float)); }
};

// One call of SumGradients. Two buckets are in flight: while one is summed, the next one's parts travel.
class Reduction {
 public:
  Reduction(Communicator& group, absl::Span<float> region, absl::Span<float> scratch,
            const GradientReducerOptions& options)
      : group_(group),
        region_(region),
        options_(options),
        bucket_elements_(std::min(static_cast<int64_t>(region.size()), options.bucket_elements)),
        chunk_elements_(ReductionChunkElements(bucket_elements_, group.size())) {
    const int64_t parts = (group.size() - 1) * chunk_elements_;
    scratch_ = {scratch.data(), scratch.data() + parts};
  }

  absl::Status Run() {
    const int64_t elements = static_cast<int64_t>(region_.size());
    const int64_t buckets = (elements + bucket_elements_ - 1) / bucket_elements_;
    for (int64_t bucket = 0; bucket < std::min<int64_t>(buckets, 2); ++bucket) MUSTER_RETURN_IF_ERROR(Scatter(bucket));
    for (int64_t bucket = 0; bucket < buckets; ++bucket) {
      MUSTER_RETURN_IF_ERROR(group_.Wait(scattered_[static_cast<size_t>(bucket % 2)]));
      Sum(bucket);
      if (bucket > 0) MUSTER_RETURN_IF_ERROR(group_.Wait(gathered_));
      MUSTER_RETURN_IF_ERROR(Gather(bucket));
      if (bucket + 2 < buckets) MUSTER_RETURN_IF_ERROR(Scatter(bucket + 2));
    }
    return group_.Wait(gathered_);
  }

 private:
  // What `rank` sums of a bucket; empty for the last ranks of a short bucket.
  Chunk ChunkOf(int64_t bucket, int rank) const {
    const int64_t bucket_end = std::min((bucket + 1) * bucket_elements_, static_cast<int64_t>(region_.size()));
    const int64_t first = std::min(bucket * bucket_elements_ + rank * chunk_elements_, bucket_end);
    const int64_t last = std::min(first + chunk_elements_, bucket_end);
    return {region_.data() + first, last - first};
  }

  // Where another rank's part of our chunk arrives.
  float* PartFrom(int64_t bucket, int rank) const {
    const int slot = rank < group_.rank() ? rank : rank - 1;
    return scratch_[static_cast<size_t>(bucket % 2)] + slot * chunk_elements_;
  }

  // Every rank gets its chunk from all others.
  absl::Status Scatter(int64_t bucket) {
    const Chunk own = ChunkOf(bucket, group_.rank());
    std::vector<Transfer> transfers;
    for (int peer = 0; peer < group_.size(); ++peer) {
      if (peer == group_.rank()) continue;
      const Chunk theirs = ChunkOf(bucket, peer);
      transfers.push_back({Transfer::Direction::kReceive, peer, PartFrom(bucket, peer), own.bytes()});
      transfers.push_back({Transfer::Direction::kSend, peer, theirs.data, theirs.bytes()});
    }
    MUSTER_ASSIGN_OR_RETURN(scattered_[static_cast<size_t>(bucket % 2)], group_.Exchange(transfers));
    return absl::OkStatus();
  }

  void Sum(int64_t bucket) {
    const Chunk own = ChunkOf(bucket, group_.rank());
    if (own.elements == 0) return;
    std::vector<const float*> parts;
    for (int rank = 0; rank < group_.size(); ++rank) {
      parts.push_back(rank == group_.rank() ? own.data : PartFrom(bucket, rank));
    }
    options_.sum(parts, own.data, own.elements);
  }

  // Every rank gives its sums to all others.
  absl::Status Gather(int64_t bucket) {
    const Chunk own = ChunkOf(bucket, group_.rank());
    std::vector<Transfer> transfers;
    for (int peer = 0; peer < group_.size(); ++peer) {
      if (peer == group_.rank()) continue;
      const Chunk theirs = ChunkOf(bucket, peer);
      transfers.push_back({Transfer::Direction::kReceive, peer, theirs.data, theirs.bytes()});
      transfers.push_back({Transfer::Direction::kSend, peer, own.data, own.bytes()});
    }
    MUSTER_ASSIGN_OR_RETURN(gathered_, group_.Exchange(transfers));
    return absl::OkStatus();
  }

  Communicator& group_;
  const absl::Span<float> region_;
  const GradientReducerOptions& options_;
  const int64_t bucket_elements_;
  const int64_t chunk_elements_;

  std::array<float*, 2> scratch_{};    // by bucket mod 2
  std::array<Ticket, 2> scattered_{};  // the same
  Ticket gathered_ = 0;                // of the latest bucket summed
};

}  // namespace

void SumPartsOnHost(absl::Span<const float* const> parts, float* out, int64_t elements) {
  // Blocks of sums stay in the first-level cache while the parts stream by, and `out` is written after all parts were
  // read.
  constexpr int64_t kBlock = 1024;
  float sums[kBlock];
  for (int64_t first = 0; first < elements; first += kBlock) {
    const int64_t count = std::min(kBlock, elements - first);
    std::memcpy(sums, parts[0] + first, static_cast<size_t>(count) * sizeof(float));
    for (const float* part : parts.subspan(1)) {
      for (int64_t i = 0; i < count; ++i) sums[i] += part[first + i];
    }
    std::memcpy(out + first, sums, static_cast<size_t>(count) * sizeof(float));
  }
}

absl::Status SumGradients(Communicator& group, absl::Span<float> region, absl::Span<float> scratch,
                          const GradientReducerOptions& options) {
  if (group.size() == 1 || region.empty()) return absl::OkStatus();
  const int64_t scratch_bytes =
      GradientReducerScratchBytes(static_cast<int64_t>(region.size()), group.size(), options.bucket_elements);
  MUSTER_CHECK(options.bucket_elements > 0);
  MUSTER_CHECK(static_cast<int64_t>(scratch.size() * sizeof(float)) >= scratch_bytes, "group ", group.name(),
               ": scratch of ", scratch.size() * sizeof(float), " bytes, not ", scratch_bytes);
  return Reduction(group, region, scratch, options).Run();
}

}  // namespace muster
