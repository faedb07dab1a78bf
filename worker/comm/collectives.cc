// AllGather, AllReduceSum and Barrier in terms of Exchange and Wait, so that they are the same on every back-end.
#include <cstring>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/comm/communicator.h"

namespace muster {

absl::Status AllGather(Communicator& group, absl::Span<const std::byte> mine, absl::Span<std::byte> all) {
  MUSTER_CHECK(all.size() == mine.size() * static_cast<size_t>(group.size()), "group ", group.name(), ": ", all.size(),
               " bytes for ", group.size(), " x ", mine.size());
  const size_t bytes = mine.size();
  std::byte* own = all.data() + bytes * static_cast<size_t>(group.rank());
  if (own != mine.data() && bytes > 0) std::memmove(own, mine.data(), bytes);

  std::vector<Transfer> transfers;
  for (int peer = 0; peer < group.size(); ++peer) {
    if (peer == group.rank()) continue;
    std::byte* theirs = all.data() + bytes * static_cast<size_t>(peer);
    transfers.push_back({Transfer::Direction::kReceive, peer, theirs, static_cast<int64_t>(bytes)});
    transfers.push_back({Transfer::Direction::kSend, peer, own, static_cast<int64_t>(bytes)});
  }
  MUSTER_ASSIGN_OR_RETURN(const Ticket ticket, group.Exchange(transfers));
  return group.Wait(ticket);
}

absl::Status AllReduceSum(Communicator& group, absl::Span<double> values) {
  std::vector<double> all(values.size() * static_cast<size_t>(group.size()));
  MUSTER_RETURN_IF_ERROR(AllGather(group,
                                   {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(double)},
                                   {reinterpret_cast<std::byte*>(all.data()), all.size() * sizeof(double)}));
  for (size_t i = 0; i < values.size(); ++i) {
    double sum = all[i];
    for (size_t j = i + values.size(); j < all.size(); j += values.size()) sum += all[j];
    values[i] = sum;
  }
  return absl::OkStatus();
}

absl::Status Barrier(Communicator& group) {
  const std::byte mine{1};
  std::vector<std::byte> all(static_cast<size_t>(group.size()));
  return AllGather(group, {&mine, 1}, absl::MakeSpan(all));
}

}  // namespace muster
