#include "worker/agent/fence.h"

#include <algorithm>

namespace muster {

Fence::~Fence() {
  if (timer_ != 0) loop_->CancelTimer(timer_);
}

void Fence::OnWelcome(absl::Duration hello_sent, absl::Duration fence_after) {
  fence_after_ = fence_after > absl::ZeroDuration() ? fence_after : absl::InfiniteDuration();
  sent_.clear();
  Extend(hello_sent);
}

void Fence::OnHeartbeatSent(int64_t sequence) { sent_[sequence] = clock_->SinceBoot(); }

void Fence::OnHeartbeatAcknowledged(int64_t sequence) {
  const auto found = sent_.find(sequence);
  if (found == sent_.end()) return;
  const absl::Duration contact = found->second;
  sent_.erase(sent_.begin(), std::next(found));
  Extend(contact);
}

void Fence::Extend(absl::Duration contact) {
  contact_ = std::max(contact_, contact);
  stamp_->Set(contact_ + fence_after_);
  if (timer_ == 0 && fence_after_ != absl::InfiniteDuration()) {
    timer_ = loop_->After(contact_ + fence_after_ - clock_->SinceBoot(), [this] { OnTimer(); });
  }
}

void Fence::OnTimer() {
  timer_ = 0;
  const absl::Duration left = contact_ + fence_after_ - clock_->SinceBoot();
  if (left > absl::ZeroDuration()) {  // it was extended meanwhile
    timer_ = loop_->After(left, [this] { OnTimer(); });
    return;
  }
  on_expired_(clock_->SinceBoot() - contact_);  // the next answer starts the timer again
}

}  // namespace muster
