// What goes wrong between two ranks, in one wording for every back-end: group, operation and peer are always named,
// because a hang is explained by its latest rank.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "worker/comm/communicator.h"

namespace muster {

// One transfer of one operation, as its error names it.
struct TransferSite {
  absl::string_view group;
  Ticket ticket = 0;
  Transfer transfer;
  int world_peer = 0;  // the peer's rank in the world, which is what a user knows
};

// UNAVAILABLE: the peer failed, ended or was killed.
absl::Status PeerGone(const TransferSite& site, absl::string_view detail);

// DEADLINE_EXCEEDED: the peer has not come to its side of the transfer.
absl::Status PeerLate(const TransferSite& site, absl::Duration deadline);

// INVALID_ARGUMENT: the two sides do not agree about the size.
absl::Status SizesDiffer(const TransferSite& site, int64_t peer_bytes);

// Aborts where a transfer breaks the contract of Exchange: it is a bug of the caller.
void CheckTransfers(const Communicator& group, absl::Span<const Transfer> transfers);

// Our place in the list given to Split. INVALID_ARGUMENT when the list is not a set of ranks of `group` that has ours
// in it.
absl::StatusOr<int> RankAfterSplit(const Communicator& group, const std::vector<int>& ranks, const std::string& name);

}  // namespace muster
