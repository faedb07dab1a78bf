#include "worker/comm/local_communicator.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/comm/transfer_error.h"

namespace muster {
namespace {

// One side of a transfer, until both sides have come. Lives in its communicator's operation, guarded by the mailbox's
// mutex.
struct Posted {
  Transfer transfer;
  bool done = false;
  int64_t peer_bytes = -1;  // set where the peer's side has another size
};

// What one rank sends to another within one group, in order: at any time only sends or only receives wait in it.
struct Mailbox {
  absl::Mutex mutex;
  absl::CondVar changed;
  std::deque<Posted*> waiting ABSL_GUARDED_BY(mutex);
};

}  // namespace

// One group's mailboxes, shared by its members. Thread-safe.
class LocalChannel {
 public:
  LocalChannel(std::string name, std::vector<int> world_ranks)
      : name(std::move(name)),
        world_ranks(std::move(world_ranks)),
        mailboxes_(this->world_ranks.size() * this->world_ranks.size()) {}

  int size() const { return static_cast<int>(world_ranks.size()); }

  // The mailbox of a transfer of that rank.
  Mailbox& MailboxOf(const Transfer& transfer, int rank) {
    const int from = transfer.sends() ? rank : transfer.peer;
    const int to = transfer.sends() ? transfer.peer : rank;
    return mailboxes_[static_cast<size_t>(from) * world_ranks.size() + static_cast<size_t>(to)];
  }

  // Wakes whoever waits in any mailbox, after whatever copy is being made.
  void Wake() {
    for (Mailbox& mailbox : mailboxes_) {
      absl::MutexLock lock(&mailbox.mutex);
      mailbox.changed.SignalAll();
    }
  }

  const std::string name;
  const std::vector<int> world_ranks;  // of the group's ranks

 private:
  std::vector<Mailbox> mailboxes_;
};

// What all ranks share: the groups, and who is gone. Thread-safe. A mailbox's mutex is taken before the world's, or
// alone.
class LocalWorld {
 public:
  LocalWorld(int size, absl::Duration deadline) : deadline(deadline), gone_(static_cast<size_t>(size), false) {}

  // The group of that name, made by the first of its members to come. INVALID_ARGUMENT when this member has come
  // before.
  absl::StatusOr<std::shared_ptr<LocalChannel>> Join(const std::string& name, const std::vector<int>& world_ranks,
                                                     int world_rank) {
    absl::MutexLock lock(&mutex_);
    if (!joined_.emplace(name, world_rank).second) {
      return absl::InvalidArgumentError(absl::StrCat("world rank ", world_rank, " has had a group ", name, " before"));
    }
    std::shared_ptr<LocalChannel>& channel = channels_[std::make_pair(name, world_ranks)];
    if (channel == nullptr) channel = std::make_shared<LocalChannel>(name, world_ranks);
    return channel;
  }

  // The first failure is the one that every later call returns.
  absl::Status Fail(const absl::Status& failure) {
    {
      absl::MutexLock lock(&mutex_);
      if (failure_.ok()) failure_ = failure;
    }
    WakeAll();
    return this->failure();
  }

  void Leave(int world_rank) {
    {
      absl::MutexLock lock(&mutex_);
      gone_[static_cast<size_t>(world_rank)] = true;
    }
    WakeAll();
  }

  absl::Status failure() {
    absl::MutexLock lock(&mutex_);
    return failure_;
  }

  // The failure, once no copy is under way that began before it: after that the caller's memory is its own again.
  absl::Status CheckAlive() {
    absl::Status status = failure();
    if (!status.ok()) WakeAll();
    return status;
  }

  bool gone(int world_rank) {
    absl::MutexLock lock(&mutex_);
    return gone_[static_cast<size_t>(world_rank)];
  }

  const absl::Duration deadline;

 private:
  void WakeAll() {
    std::vector<std::shared_ptr<LocalChannel>> channels;
    {
      absl::MutexLock lock(&mutex_);
      for (const auto& entry : channels_) channels.push_back(entry.second);
    }
    for (const auto& channel : channels) channel->Wake();
  }

  absl::Mutex mutex_;
  std::map<std::pair<std::string, std::vector<int>>, std::shared_ptr<LocalChannel>> channels_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<std::string, int>> joined_ ABSL_GUARDED_BY(mutex_);  // groups and their world ranks
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> gone_ ABSL_GUARDED_BY(mutex_);
};

struct LocalCommunicator::Operation {
  Ticket ticket = 0;
  std::vector<Posted> posted;
};

namespace {

// Puts one side into the mailbox, or completes it with the side that waits there.
void Post(LocalWorld& world, Mailbox& mailbox, Posted& posted) {
  absl::MutexLock lock(&mailbox.mutex);
  // The memory of a failed world's peers may be gone already.
  if (!world.failure().ok()) return;
  if (mailbox.waiting.empty() || mailbox.waiting.front()->transfer.direction == posted.transfer.direction) {
    mailbox.waiting.push_back(&posted);
    return;
  }
  Posted& peer = *mailbox.waiting.front();
  mailbox.waiting.pop_front();
  if (peer.transfer.bytes != posted.transfer.bytes) {
    posted.peer_bytes = peer.transfer.bytes;
    peer.peer_bytes = posted.transfer.bytes;
  } else if (posted.transfer.bytes > 0) {
    const bool sends = posted.transfer.sends();
    std::memcpy(sends ? peer.transfer.data : posted.transfer.data, sends ? posted.transfer.data : peer.transfer.data,
                static_cast<size_t>(posted.transfer.bytes));
  }
  posted.done = peer.done = true;
  mailbox.changed.SignalAll();
}

absl::Status WaitFor(LocalWorld& world, Mailbox& mailbox, const Posted& posted, const TransferSite& site,
                     absl::Time deadline) {
  absl::MutexLock lock(&mailbox.mutex);
  bool late = false;
  while (!posted.done) {
    MUSTER_RETURN_IF_ERROR(world.failure());
    if (world.gone(site.world_peer)) return PeerGone(site, "it has ended");
    if (late) return PeerLate(site, world.deadline);
    late = mailbox.changed.WaitWithDeadline(&mailbox.mutex, deadline);
  }
  return posted.peer_bytes < 0 ? absl::OkStatus() : SizesDiffer(site, posted.peer_bytes);
}

}  // namespace

LocalCommunicator::LocalCommunicator(std::shared_ptr<LocalWorld> world, std::shared_ptr<LocalChannel> channel, int rank)
    : world_(std::move(world)), channel_(std::move(channel)), rank_(rank) {}

LocalCommunicator::~LocalCommunicator() {
  // Transfers that nobody waited for leave their mailboxes, whose peers then wait in vain.
  for (const auto& operation : open_) {
    for (const Posted& posted : operation->posted) {
      Mailbox& mailbox = channel_->MailboxOf(posted.transfer, rank_);
      absl::MutexLock lock(&mailbox.mutex);
      const auto place = std::find(mailbox.waiting.begin(), mailbox.waiting.end(), &posted);
      if (place != mailbox.waiting.end()) mailbox.waiting.erase(place);
    }
  }
  if (channel_->name == "world") world_->Leave(rank_);
}

const std::string& LocalCommunicator::name() const { return channel_->name; }

int LocalCommunicator::size() const { return channel_->size(); }

absl::StatusOr<Ticket> LocalCommunicator::Exchange(absl::Span<const Transfer> transfers) {
  CheckTransfers(*this, transfers);
  MUSTER_RETURN_IF_ERROR(world_->CheckAlive());
  auto operation = std::make_unique<Operation>();
  operation->ticket = next_ticket_++;
  for (const Transfer& transfer : transfers) operation->posted.push_back({transfer});
  for (Posted& posted : operation->posted) Post(*world_, channel_->MailboxOf(posted.transfer, rank_), posted);
  open_.push_back(std::move(operation));
  return open_.back()->ticket;
}

absl::Status LocalCommunicator::Wait(Ticket ticket) {
  MUSTER_RETURN_IF_ERROR(world_->CheckAlive());
  const auto place = std::find_if(open_.begin(), open_.end(), [&](const auto& open) { return open->ticket == ticket; });
  MUSTER_CHECK(place != open_.end(), "group ", name(), ": ticket ", ticket, " is not open");

  const absl::Time deadline = absl::Now() + world_->deadline;
  for (const Posted& posted : (*place)->posted) {
    const int world_peer = channel_->world_ranks[static_cast<size_t>(posted.transfer.peer)];
    const TransferSite site{name(), ticket, posted.transfer, world_peer};
    Mailbox& mailbox = channel_->MailboxOf(posted.transfer, rank_);
    const absl::Status status = WaitFor(*world_, mailbox, posted, site, deadline);
    if (!status.ok()) return world_->Fail(status);
  }
  open_.erase(place);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Communicator>> LocalCommunicator::Split(const std::vector<int>& ranks,
                                                                       const std::string& name) {
  MUSTER_RETURN_IF_ERROR(world_->CheckAlive());
  MUSTER_ASSIGN_OR_RETURN(const int rank, RankAfterSplit(*this, ranks, name));
  std::vector<int> world_ranks;
  for (int member : ranks) world_ranks.push_back(channel_->world_ranks[static_cast<size_t>(member)]);
  const int world_rank = channel_->world_ranks[static_cast<size_t>(rank_)];
  MUSTER_ASSIGN_OR_RETURN(auto channel, world_->Join(name, world_ranks, world_rank));
  return std::unique_ptr<Communicator>(std::make_unique<LocalCommunicator>(world_, std::move(channel), rank));
}

void LocalCommunicator::Abort(absl::string_view reason) {
  const int world_rank = channel_->world_ranks[static_cast<size_t>(rank_)];
  world_->Fail(absl::UnavailableError(absl::StrCat("world rank ", world_rank, " is gone: ", reason))).IgnoreError();
}

std::vector<std::unique_ptr<LocalCommunicator>> MakeLocalGroup(int size, absl::Duration deadline) {
  MUSTER_CHECK(size > 0);
  auto world = std::make_shared<LocalWorld>(size, deadline);
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(rank);
  std::vector<std::unique_ptr<LocalCommunicator>> group;
  for (int rank : ranks) {
    group.push_back(std::make_unique<LocalCommunicator>(world, world->Join("world", ranks, rank).value(), rank));
  }
  return group;
}

}  // namespace muster
