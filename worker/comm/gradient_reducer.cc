#include "worker/comm/gradient_reducer.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

void AddTransfer(Transfer::Direction direction, int peer, float* data, int64_t bytes,
                 std::vector<Transfer>& transfers) {
  if (bytes > 0) transfers.push_back({direction, peer, data, bytes});
}

}  // namespace

GradientReducer::GradientReducer(Communicator& group, absl::Span<float> scratch, Options options)
    : group_(group), options_(std::move(options)), half_elements_(static_cast<int64_t>(scratch.size() / 2)) {
  MUSTER_CHECK(options_.sum != nullptr, "group ", group.name(), ": nothing sums");
  halves_ = {scratch.data(), scratch.data() + half_elements_};
}

absl::Status GradientReducer::Start(const GradientBucket& bucket) {
  if (group_.size() == 1) return absl::OkStatus();
  if (in_flight_.size() == halves_.size()) MUSTER_RETURN_IF_ERROR(SumOldest());
  const int half = std::exchange(next_half_, 1 - next_half_);
  const int64_t total = OwnElements(bucket);
  MUSTER_CHECK((group_.size() - 1) * total <= half_elements_, "group ", group_.name(), ": scratch for ", half_elements_,
               " elements, not ", (group_.size() - 1) * total);
  std::vector<Transfer> transfers;
  int64_t offset = 0;
  for (const std::vector<GradientRun>& segment : bucket) {
    const GradientRun& own = Own(segment);
    for (int peer = 0; peer < group_.size(); ++peer) {
      if (peer == group_.rank()) continue;
      const GradientRun& theirs = segment[static_cast<size_t>(peer)];
      AddTransfer(Transfer::Direction::kReceive, peer, PartFrom(half, peer, offset, total), own.bytes(), transfers);
      AddTransfer(Transfer::Direction::kSend, peer, theirs.data, theirs.bytes(), transfers);
    }
    offset += own.elements;
  }
  MUSTER_ASSIGN_OR_RETURN(const Ticket scattered, group_.Exchange(transfers));
  in_flight_.push_back({.bucket = &bucket, .half = half, .scattered = scattered});
  return absl::OkStatus();
}

absl::Status GradientReducer::Finish() {
  while (!in_flight_.empty()) MUSTER_RETURN_IF_ERROR(SumOldest());
  for (const Ticket gathered : std::exchange(gathered_, {})) MUSTER_RETURN_IF_ERROR(group_.Wait(gathered));
  return absl::OkStatus();
}

absl::Status GradientReducer::SumOldest() {
  const InFlight oldest = in_flight_.front();
  in_flight_.pop_front();
  MUSTER_RETURN_IF_ERROR(group_.Wait(oldest.scattered));
  const int64_t total = OwnElements(*oldest.bucket);
  int64_t offset = 0;
  std::vector<float*> parts(static_cast<size_t>(group_.size()));
  for (const std::vector<GradientRun>& segment : *oldest.bucket) {
    const GradientRun& own = Own(segment);
    if (own.elements == 0) continue;
    for (int rank = 0; rank < group_.size(); ++rank) {
      parts[static_cast<size_t>(rank)] = rank == group_.rank() ? own.data : PartFrom(oldest.half, rank, offset, total);
    }
    options_.sum(parts, own.data, own.elements);
    offset += own.elements;
  }
  return options_.gather ? Gather(*oldest.bucket) : absl::OkStatus();
}

// Every rank gives its sums to all others.
absl::Status GradientReducer::Gather(const GradientBucket& bucket) {
  std::vector<Transfer> transfers;
  for (const std::vector<GradientRun>& segment : bucket) {
    const GradientRun& own = Own(segment);
    for (int peer = 0; peer < group_.size(); ++peer) {
      if (peer == group_.rank()) continue;
      const GradientRun& theirs = segment[static_cast<size_t>(peer)];
      AddTransfer(Transfer::Direction::kReceive, peer, theirs.data, theirs.bytes(), transfers);
      AddTransfer(Transfer::Direction::kSend, peer, own.data, own.bytes(), transfers);
    }
  }
  MUSTER_ASSIGN_OR_RETURN(const Ticket gathered, group_.Exchange(transfers));
  gathered_.push_back(gathered);
  return absl::OkStatus();
}

float* GradientReducer::PartFrom(int half, int peer, int64_t offset, int64_t total) const {
  const int slot = peer < group_.rank() ? peer : peer - 1;
  return halves_[static_cast<size_t>(half)] + slot * total + offset;
}

const GradientRun& GradientReducer::Own(const std::vector<GradientRun>& segment) const {
  return segment[static_cast<size_t>(group_.rank())];
}

int64_t GradientReducer::OwnElements(const GradientBucket& bucket) const {
  int64_t elements = 0;
  for (const std::vector<GradientRun>& segment : bucket) elements += Own(segment).elements;
  return elements;
}

}  // namespace muster
