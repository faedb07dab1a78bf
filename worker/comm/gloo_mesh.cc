#include "worker/comm/gloo_mesh.h"

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/tcp/attr.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/status_macros.h"
#include "worker/comm/gloo_post_queue.h"
#include "worker/comm/gloo_ticker.h"

namespace muster {
namespace {

// How late a connection that breaks in the middle of a transfer may be seen. A tick costs the waiting thread some
// microseconds.
constexpr absl::Duration kTick = absl::Milliseconds(20);

// No group has this number, sequence and size together.
constexpr uint64_t kSentinelSlot = ~uint64_t{0};

std::chrono::milliseconds RoundUpToMilliseconds(absl::Duration duration) {
  return absl::ToChronoMilliseconds(absl::Ceil(std::max(duration, absl::ZeroDuration()), absl::Milliseconds(1)));
}

// Gloo's messages begin with the place in its sources.
std::string Reason(const std::exception& error) {
  absl::string_view message = error.what();
  const size_t end_of_place = message.find("] ");
  if (absl::StartsWith(message, "[") && end_of_place != absl::string_view::npos)
    message.remove_prefix(end_of_place + 2);
  return std::string(message);
}

std::string StoreKey(int rank) { return absl::StrCat("gloo/", rank); }

}  // namespace

absl::StatusOr<std::shared_ptr<GlooMesh>> GlooMesh::Connect(const GlooOptions& options, RendezvousStore& store) {
  const absl::Time start = absl::Now();
  MUSTER_CHECK(options.rank >= 0 && options.rank < options.size, "rank ", options.rank, " of ", options.size);
  std::shared_ptr<GlooMesh> mesh(new GlooMesh());
  if (options.size == 1) return mesh;
  std::signal(SIGPIPE, SIG_IGN);

  MUSTER_ASSIGN_OR_RETURN(const std::string own_addresses, mesh->Listen(options));
  MUSTER_RETURN_IF_ERROR(store.Set(StoreKey(options.rank), own_addresses));

  // All addresses first: a rank that has published is alive and about to connect, so that what follows is quick.
  std::vector<std::string> addresses(static_cast<size_t>(options.size));
  const size_t address_bytes = own_addresses.size() / static_cast<size_t>(options.size);
  for (int peer = 0; peer < options.size; ++peer) {
    if (peer == options.rank) continue;
    const absl::Duration left = start + options.setup_deadline * 0.75 - absl::Now();
    absl::StatusOr<std::string> published = store.Get(StoreKey(peer), std::max(left, absl::ZeroDuration()));
    if (!published.ok()) {
      return absl::Status(published.status().code(),
                          absl::StrCat("world rank ", options.rank, " waits for the address of rank ", peer, ": ",
                                       published.status().message()));
    }
    if (published->size() != own_addresses.size()) {
      return absl::InvalidArgumentError(absl::StrCat("world rank ", peer, " published ", published->size(),
                                                     " bytes of addresses, not ", own_addresses.size(),
                                                     ": is it of this job and version?"));
    }
    addresses[static_cast<size_t>(peer)] =
        published->substr(address_bytes * static_cast<size_t>(options.rank), address_bytes);
  }
  // Every rank in the same order, so that none waits for one that waits for it.
  for (int peer = 0; peer < options.size; ++peer) {
    if (peer == options.rank) continue;
    if (absl::Now() - start > options.setup_deadline * 0.875) {
      return absl::DeadlineExceededError(absl::StrCat("the world was not connected within ",
                                                      absl::FormatDuration(options.setup_deadline), "; rank ", peer,
                                                      " was next for rank ", options.rank));
    }
    MUSTER_RETURN_IF_ERROR(mesh->ConnectPeer(peer, addresses[static_cast<size_t>(peer)]));
  }
  return mesh;
}

GlooMesh::~GlooMesh() {
  // First what calls us on the device thread: each returns when none of its calls runs any more, and those calls use
  // the members that end before these.
  queue_.reset();
  ticker_.reset();
}

absl::StatusOr<std::string> GlooMesh::Listen(const GlooOptions& options) {
  try {
    gloo::transport::tcp::attr attributes;
    if (options.interface.empty()) {
      attributes.hostname = options.host;
    } else {
      attributes.iface = options.interface;
    }
    device_ = gloo::transport::tcp::CreateDevice(attributes);
    const auto tcp_device = std::dynamic_pointer_cast<gloo::transport::tcp::Device>(device_);
    ticker_ = std::make_unique<GlooTicker>(tcp_device, kTick);
    queue_ = std::make_unique<GlooPostQueue>(tcp_device);
    context_ = device_->createContext(options.rank, options.size);
    // Gloo waits five times this long for one connection.
    context_->setTimeout(RoundUpToMilliseconds(options.setup_deadline / 8 / 5));
    std::vector<std::string> addresses(static_cast<size_t>(options.size));
    size_t address_bytes = 0;
    for (int peer = 0; peer < options.size; ++peer) {
      if (peer == options.rank) continue;
      const std::vector<char> address = context_->createPair(peer)->address().bytes();
      addresses[static_cast<size_t>(peer)].assign(address.begin(), address.end());
      address_bytes = address.size();
    }
    addresses[static_cast<size_t>(options.rank)].resize(address_bytes);
    return absl::StrJoin(addresses, "");
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot listen on ", options.interface.empty() ? "host " : "interface ",
                     options.interface.empty() ? options.host : options.interface, ": ", Reason(error)));
  }
}

absl::Status GlooMesh::ConnectPeer(int peer, const std::string& address) {
  try {
    context_->getPair(peer)->connect({address.begin(), address.end()});
    static char never_received = 0;
    absl::MutexLock lock(&sentinels_mutex_);
    sentinels_.resize(static_cast<size_t>(context_->size));
    std::unique_ptr<Buffer>& sentinel = sentinels_[static_cast<size_t>(peer)];
    sentinel = context_->createUnboundBuffer(&never_received, sizeof(never_received));
    sentinel->recv(peer, kSentinelSlot);
    return absl::OkStatus();
  } catch (const std::exception& error) {
    const std::string message = absl::StrCat("no connection to world rank ", peer, ": ", Reason(error));
    const bool late = absl::StrContains(message, "timeout");
    return late ? absl::DeadlineExceededError(message) : absl::UnavailableError(message);
  }
}

absl::Status GlooMesh::Post(std::vector<Posting>& postings) {
  MUSTER_RETURN_IF_ERROR(CheckAlive());
  std::vector<std::function<void()>> calls;
  for (Posting& posting : postings) {
    const Transfer& transfer = posting.site.transfer;
    posting.buffer = context_->createUnboundBuffer(transfer.data, static_cast<size_t>(transfer.bytes));
    // The call may run when the group, whose name the site points to, is gone.
    calls.push_back([this, posting, group = std::string(posting.site.group)] {
      TransferSite site = posting.site;
      site.group = group;
      Start(site, posting.slot, *posting.buffer);
    });
  }
  queue_->Run(std::move(calls));
  return absl::OkStatus();
}

void GlooMesh::Start(const TransferSite& site, uint64_t slot, Buffer& buffer) {
  if (!close_mutex_.TryLock()) return;  // the mesh has failed
  try {
    if (site.transfer.sends()) {
      buffer.send(site.world_peer, slot);
    } else {
      buffer.recv(site.world_peer, slot);
    }
  } catch (const std::exception& error) {
    SetFailure(PeerGone(site, Reason(error))).IgnoreError();
  }
  close_mutex_.Unlock();
}

absl::Status GlooMesh::Wait(const TransferSite& site, Buffer& buffer, absl::Time deadline, absl::Duration limit) {
  std::string reason = "its connection broke during the transfer";
  try {
    if (WaitWhileConnected(site, buffer, deadline)) return absl::OkStatus();
  } catch (const std::exception& error) {
    reason = Reason(error);
  }
  return Fail(absl::Now() >= deadline ? PeerLate(site, limit) : PeerGone(site, reason));
}

bool GlooMesh::WaitWhileConnected(const TransferSite& site, Buffer& buffer, absl::Time deadline) {
  // Gloo's own time-out would close the connections while the device thread may wait for one of them: ours is looked at
  // with each tick.
  constexpr std::chrono::hours kNoTimeout(24);
  const bool sends = site.transfer.sends();
  const auto wait_for_tick = [&buffer, sends, kNoTimeout] {
    return sends ? buffer.waitSend(nullptr, kNoTimeout) : buffer.waitRecv(nullptr, kNoTimeout);
  };
  GlooTicker::Scope tick(*ticker_, buffer);
  do {
    if (wait_for_tick()) return true;
    if (absl::Now() >= deadline || !failure().ok()) return false;
  } while (Connected(site.world_peer));
  // A peer may have sent its last bytes and ended; then the transfer is done, and a wait says no only for a tick that
  // came between.
  return wait_for_tick() || wait_for_tick() || wait_for_tick();
}

bool GlooMesh::Connected(int peer) {
  absl::MutexLock lock(&sentinels_mutex_);
  Buffer& sentinel = *sentinels_[static_cast<size_t>(peer)];
  try {
    // Aborted beforehand, the wait returns at once, unless the connection is broken: then it throws.
    sentinel.abortWaitRecv();
    sentinel.waitRecv(nullptr, std::chrono::milliseconds(1));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

absl::Status GlooMesh::Fail(const absl::Status& cause) {
  absl::Status first = SetFailure(cause);
  Close();
  return first;
}

absl::Status GlooMesh::SetFailure(const absl::Status& cause) {
  absl::MutexLock lock(&mutex_);
  if (failure_.ok()) failure_ = cause;
  return failure_;
}

void GlooMesh::Close() {
  absl::MutexLock lock(&close_mutex_);
  if (closed_ || context_ == nullptr) return;
  closed_ = true;
  // Gloo has no call to end a context. A wait that times out does it: it closes every connection.
  try {
    char byte = 0;
    context_->createUnboundBuffer(&byte, 1)->waitRecv(nullptr, std::chrono::milliseconds(0));
  } catch (const std::exception&) {
  }
}

absl::Status GlooMesh::CheckAlive() {
  absl::Status status = failure();
  if (!status.ok()) Close();
  return status;
}

absl::Status GlooMesh::failure() const {
  absl::MutexLock lock(&mutex_);
  return failure_;
}

absl::StatusOr<uint64_t> GlooMesh::NumberGroup(const std::string& name, const std::vector<int>& world_ranks) {
  // The hash folded to 24 bits. Two groups that share a pair of ranks would have to meet on one number to disturb each
  // other, and then both ranks see it here.
  const uint64_t hash = HashText(absl::StrCat(name, "/", absl::StrJoin(world_ranks, ",")));
  const uint64_t number = (hash ^ hash >> 24 ^ hash >> 48) & 0xffffff;
  absl::MutexLock lock(&mutex_);
  const auto [entry, inserted] = groups_.emplace(number, name);
  if (!inserted) {
    return absl::InvalidArgumentError(absl::StrCat("group ", name, " cannot be told from group ", entry->second,
                                                   " of this rank: give it another name"));
  }
  return number;
}

}  // namespace muster
