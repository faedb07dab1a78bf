// One rank's connections to all others, shared by the groups of its world; the only file that calls Gloo, and its
// exceptions end here.
//
// Thread-safe, though each group is used by one thread. Fails once and whole: on the first error all connections close,
// so that every peer hears of it as soon as it has an operation open, and no byte is written to anybody's memory any
// more.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker/comm/gloo_communicator.h"
#include "worker/comm/rendezvous_store.h"
#include "worker/comm/transfer_error.h"

namespace gloo::transport {
class Context;
class Device;
class UnboundBuffer;
}  // namespace gloo::transport

namespace muster {

class GlooPostQueue;
class GlooTicker;

class GlooMesh {
 public:
  // One posted transfer. Destroying it before it is waited for is allowed only after the mesh has failed.
  using Buffer = gloo::transport::UnboundBuffer;

  static absl::StatusOr<std::shared_ptr<GlooMesh>> Connect(const GlooOptions& options, RendezvousStore& store);
  ~GlooMesh();

  // One transfer to start. Send and receive meet when their slots are equal.
  struct Posting {
    TransferSite site;
    uint64_t slot = 0;
    std::shared_ptr<Buffer> buffer;  // set by Post
  };
  // Starts them in their order and does not block. An error of one fails the mesh, and Wait returns it.
  absl::Status Post(std::vector<Posting>& postings);

  // Until the transfer is done. `deadline` is the whole operation's, `limit` its length for the message.
  absl::Status Wait(const TransferSite& site, Buffer& buffer, absl::Time deadline, absl::Duration limit);

  // Returns the first failure, which is `cause` unless there was one before.
  absl::Status Fail(const absl::Status& cause);
  // The first failure, when no byte moves any more.
  absl::Status CheckAlive();

  // A number for the group that its members agree on without talking. INVALID_ARGUMENT when the name was used before.
  absl::StatusOr<uint64_t> NumberGroup(const std::string& name, const std::vector<int>& world_ranks);

 private:
  GlooMesh() = default;
  // Opens a port for each peer; what to publish in the store.
  absl::StatusOr<std::string> Listen(const GlooOptions& options);
  absl::Status ConnectPeer(int peer, const std::string& address);
  // Blocks until the transfer is done; false when its connection is broken, the mesh has failed or the deadline has
  // passed. Throws where Gloo does.
  bool WaitWhileConnected(const TransferSite& site, Buffer& buffer, absl::Time deadline);
  // On the device thread.
  void Start(const TransferSite& site, uint64_t slot, Buffer& buffer) ABSL_LOCKS_EXCLUDED(close_mutex_);
  absl::Status SetFailure(const absl::Status& cause);
  absl::Status failure() const;
  // Closes every connection; on any thread but the device's, which Gloo waits for here.
  void Close() ABSL_LOCKS_EXCLUDED(close_mutex_);
  bool Connected(int peer) ABSL_LOCKS_EXCLUDED(sentinels_mutex_);

  // Constant after Connect. Null in a world of one.
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::transport::Context> context_;
  std::unique_ptr<GlooTicker> ticker_;
  std::unique_ptr<GlooPostQueue> queue_;

  // By peer: a receive that never comes, which Gloo marks when the connection breaks.
  absl::Mutex sentinels_mutex_;
  std::vector<std::unique_ptr<Buffer>> sentinels_ ABSL_GUARDED_BY(sentinels_mutex_);

  // Held while connections close: then the device thread must not wait for one of them, or neither would ever go on.
  absl::Mutex close_mutex_;
  bool closed_ ABSL_GUARDED_BY(close_mutex_) = false;

  mutable absl::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::string> groups_ ABSL_GUARDED_BY(mutex_);  // names by number
};

}  // namespace muster
