// The agent's side of the lease: without an answered heartbeat for `fence_after`, its ranks die, because the
// coordinator may by then have started the job elsewhere. The time counts from when the newest answered message was
// *sent*: the coordinator's own count starts when it received that message, which is later.
//
// Owned by the agent; on the loop. Ranks read the same deadline from the lease file, so a stopped agent does not keep
// them alive.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/lease_file.h"
#include "common/rpc/event_loop.h"

namespace muster {

class Fence {
 public:
  // `on_expired` says for how long there was no contact. All outlive this.
  Fence(EventLoop* loop, const Clock* clock, LeaseStamp* stamp, std::function<void(absl::Duration silence)> on_expired)
      : loop_(loop), clock_(clock), stamp_(stamp), on_expired_(std::move(on_expired)) {}
  ~Fence();

  // A new session: the coordinator answered the Hello that was sent at `hello_sent` (Clock::SinceBoot).
  void OnWelcome(absl::Duration hello_sent, absl::Duration fence_after);

  void OnHeartbeatSent(int64_t sequence);
  void OnHeartbeatAcknowledged(int64_t sequence);

 private:
  void Extend(absl::Duration contact);
  void OnTimer();

  EventLoop* const loop_;
  const Clock* const clock_;
  LeaseStamp* const stamp_;
  const std::function<void(absl::Duration)> on_expired_;

  absl::Duration fence_after_ = absl::InfiniteDuration();
  absl::Duration contact_;                  // since boot; the newest message known to have arrived left then
  std::map<int64_t, absl::Duration> sent_;  // heartbeats of this session without an answer
  EventLoop::TimerId timer_ = 0;            // 0: none
};

}  // namespace muster
