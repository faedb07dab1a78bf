#include "worker/comm/transfer_error.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"

namespace muster {
namespace {

std::string Describe(const TransferSite& site) {
  const bool sends = site.transfer.sends();
  return absl::StrCat("group ", site.group, ", operation #", site.ticket, ": ", sends ? "send of " : "receive of ",
                      site.transfer.bytes, " bytes ", sends ? "to" : "from", " rank ", site.transfer.peer,
                      " (world rank ", site.world_peer, ")");
}

}  // namespace

absl::Status PeerGone(const TransferSite& site, absl::string_view detail) {
  return absl::UnavailableError(absl::StrCat(Describe(site), ": the peer is gone: ", detail));
}

absl::Status PeerLate(const TransferSite& site, absl::Duration deadline) {
  return absl::DeadlineExceededError(
      absl::StrCat(Describe(site), ": the peer did not take part within ", absl::FormatDuration(deadline)));
}

absl::Status SizesDiffer(const TransferSite& site, int64_t peer_bytes) {
  return absl::InvalidArgumentError(absl::StrCat(Describe(site), ": the peer's side has ", peer_bytes, " bytes"));
}

void CheckTransfers(const Communicator& group, absl::Span<const Transfer> transfers) {
  for (const Transfer& transfer : transfers) {
    MUSTER_CHECK(transfer.peer >= 0 && transfer.peer < group.size() && transfer.peer != group.rank(), "group ",
                 group.name(), ": peer ", transfer.peer, " of rank ", group.rank(), ", size ", group.size());
    MUSTER_CHECK(transfer.bytes >= 0 && (transfer.data != nullptr || transfer.bytes == 0), "group ", group.name(), ": ",
                 transfer.bytes, " bytes");
  }
}

absl::StatusOr<int> RankAfterSplit(const Communicator& group, const std::vector<int>& ranks, const std::string& name) {
  const auto invalid = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("group ", group.name(), " cannot be split into ", name, " [",
                                                   absl::StrJoin(ranks, ","), "]: ", why));
  };
  if (name == "world") return invalid("that is the name of the group of all ranks");
  std::set<int> seen;
  int own = -1;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0 || ranks[i] >= group.size()) return invalid(absl::StrCat("rank ", ranks[i], " does not exist"));
    if (!seen.insert(ranks[i]).second) return invalid(absl::StrCat("rank ", ranks[i], " is named twice"));
    if (ranks[i] == group.rank()) own = static_cast<int>(i);
  }
  if (own < 0) return invalid(absl::StrCat("our own rank ", group.rank(), " is not in it"));
  return own;
}

}  // namespace muster
