#include "worker/comm/gloo_ticker.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace muster {

GlooTicker::GlooTicker(std::shared_ptr<gloo::transport::tcp::Device> device, absl::Duration period)
    : device_(std::move(device)), timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (timer_ < 0) throw std::system_error(errno, std::generic_category(), "timerfd_create");
  const timespec interval = absl::ToTimespec(period);
  const itimerspec schedule{interval, interval};
  timerfd_settime(timer_, 0, &schedule, nullptr);
  device_->registerDescriptor(timer_, EPOLLIN, this);
}

GlooTicker::~GlooTicker() {
  device_->unregisterDescriptor(timer_, this);
  close(timer_);
}

void GlooTicker::handleEvents(int) {
  uint64_t ticks = 0;
  if (read(timer_, &ticks, sizeof(ticks)) < 0) return;
  absl::MutexLock lock(&mutex_);
  for (gloo::transport::UnboundBuffer* buffer : waiting_) {
    buffer->abortWaitSend();
    buffer->abortWaitRecv();
  }
}

GlooTicker::Scope::Scope(GlooTicker& ticker, gloo::transport::UnboundBuffer& buffer)
    : ticker_(ticker), buffer_(&buffer) {
  absl::MutexLock lock(&ticker_.mutex_);
  ticker_.waiting_.push_back(buffer_);
}

GlooTicker::Scope::~Scope() {
  absl::MutexLock lock(&ticker_.mutex_);
  ticker_.waiting_.erase(std::find(ticker_.waiting_.begin(), ticker_.waiting_.end(), buffer_));
}

}  // namespace muster
