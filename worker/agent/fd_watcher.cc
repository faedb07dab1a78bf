#include "worker/agent/fd_watcher.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "common/base/check.h"

namespace muster {

FdWatcher::FdWatcher(EventLoop* loop)
    : loop_(loop), epoll_(epoll_create1(EPOLL_CLOEXEC)), stop_(eventfd(0, EFD_CLOEXEC)) {
  MUSTER_CHECK(epoll_.valid() && stop_.valid(), "no file descriptor for epoll");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = 0;
  MUSTER_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stop_.get(), &event) == 0);
  thread_ = std::thread([this] { Sleep(); });
}

FdWatcher::~FdWatcher() {
  const uint64_t one = 1;
  MUSTER_CHECK(write(stop_.get(), &one, sizeof(one)) == sizeof(one));
  thread_.join();
}

FdWatcher::Id FdWatcher::Watch(int fd, std::function<void()> on_readable) {
  const Id id = next_++;
  watched_->emplace(id, Watched{fd, std::move(on_readable)});
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.u64 = id;
  MUSTER_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0, "cannot watch descriptor ", fd);
  return id;
}

void FdWatcher::Rearm(Id id) {
  const auto found = watched_->find(id);
  if (found == watched_->end()) return;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.u64 = id;
  MUSTER_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, found->second.fd, &event) == 0);
}

void FdWatcher::Forget(Id id) {
  const auto found = watched_->find(id);
  if (found == watched_->end()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.fd, nullptr);
  watched_->erase(found);
}

void FdWatcher::Sleep() {
  std::array<epoll_event, 64> events{};
  while (true) {
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    if (count < 0 && errno == EINTR) continue;
    MUSTER_CHECK(count >= 0, "epoll_wait failed with ", errno);
    for (int i = 0; i < count; ++i) {
      const Id id = events[static_cast<size_t>(i)].data.u64;
      if (id == 0) return;
      loop_->Post([watched = watched_, id] {
        const auto found = watched->find(id);
        if (found == watched->end()) return;
        const std::function<void()> call = found->second.on_readable;  // it may forget itself
        call();
      });
    }
  }
}

}  // namespace muster
