// Tells the event loop when a file descriptor can be read: a rank's output has lines, its pidfd says that it ended.
//
// Owned by the agent, outlived by the loop. One thread sleeps in epoll; callbacks run on the loop, so that whoever
// watches needs no lock. A descriptor is reported once and then again only after Rearm. All methods on the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "common/base/file_descriptor.h"
#include "common/rpc/event_loop.h"

namespace muster {

class FdWatcher {
 public:
  using Id = uint64_t;

  explicit FdWatcher(EventLoop* loop);
  ~FdWatcher();
  FdWatcher(const FdWatcher&) = delete;
  FdWatcher& operator=(const FdWatcher&) = delete;

  // `fd` stays open until Forget.
  Id Watch(int fd, std::function<void()> on_readable);
  void Rearm(Id id);
  void Forget(Id id);

 private:
  struct Watched {
    int fd = -1;
    std::function<void()> on_readable;
  };

  void Sleep();  // the thread

  EventLoop* const loop_;
  FileDescriptor epoll_;
  FileDescriptor stop_;  // an eventfd

  // On the loop. Tasks in flight find nothing once the watcher is gone.
  std::shared_ptr<std::map<Id, Watched>> watched_ = std::make_shared<std::map<Id, Watched>>();
  Id next_ = 1;

  std::thread thread_;
};

}  // namespace muster
