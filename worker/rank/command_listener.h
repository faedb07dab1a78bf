// Hears from the agent what this rank is asked beside training, on a thread of its own, and passes each request on
// once.
//
// Owned by the rank.
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "muster/v1/worker.grpc.pb.h"

namespace grpc {
class ClientContext;
}

namespace muster {

// Called on the listener's thread; must return soon.
struct CommandEvents {
  std::function<void()> on_checkpoint;
  std::function<void(int64_t steps)> on_trace;
};

class CommandListener {
 public:
  // `assignment`: whose rank this is, and the requests that are done with already. The stub outlives this.
  CommandListener(v1::RankService::StubInterface* stub, const v1::Assignment& assignment, CommandEvents events,
                  absl::Duration retry = absl::Seconds(1));
  // Nothing is passed on after it.
  ~CommandListener();
  CommandListener(const CommandListener&) = delete;
  CommandListener& operator=(const CommandListener&) = delete;

 private:
  void Run();
  void Listen();
  void Take(const v1::RankCommands& commands);

  v1::RankService::StubInterface* const stub_;
  v1::WatchCommandsRequest request_;
  const CommandEvents events_;
  const absl::Duration retry_;  // between tries to open a stream

  v1::RankCommands done_;  // on the thread

  absl::Mutex mutex_;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;  // of the open stream

  std::thread thread_;  // last
};

}  // namespace muster
