#include "worker/comm/gloo_post_queue.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <iterator>
#include <system_error>
#include <utility>

#include "common/base/check.h"

namespace muster {

GlooPostQueue::GlooPostQueue(std::shared_ptr<gloo::transport::tcp::Device> device)
    : device_(std::move(device)), event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (event_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  device_->registerDescriptor(event_, EPOLLIN, this);
}

GlooPostQueue::~GlooPostQueue() {
  device_->unregisterDescriptor(event_, this);
  close(event_);
}

void GlooPostQueue::Run(std::vector<std::function<void()>> calls) {
  if (calls.empty()) return;
  {
    absl::MutexLock lock(&mutex_);
    waiting_.insert(waiting_.end(), std::make_move_iterator(calls.begin()), std::make_move_iterator(calls.end()));
  }
  const uint64_t one = 1;
  MUSTER_CHECK(write(event_, &one, sizeof(one)) == sizeof(one), "an event's counter never fills");
}

void GlooPostQueue::handleEvents(int) {
  uint64_t count = 0;
  if (read(event_, &count, sizeof(count)) < 0) return;
  std::vector<std::function<void()>> calls;
  {
    absl::MutexLock lock(&mutex_);
    calls.swap(waiting_);
  }
  for (const std::function<void()>& call : calls) call();
}

}  // namespace muster
