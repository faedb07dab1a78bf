// Times, durations and sums of muster.v1 messages as plain values.
#pragma once

#include "absl/time/time.h"
#include "muster/v1/job.pb.h"

namespace muster {

inline absl::Time ToTime(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

inline double ToSeconds(const google::protobuf::Duration& duration) {
  return static_cast<double>(duration.seconds()) + static_cast<double>(duration.nanos()) * 1e-9;
}

inline int64_t Total(const v1::MemoryByCategory& memory) {
  return memory.parameters() + memory.gradients() + memory.optimizer_state() + memory.activations() + memory.logits() +
         memory.communication() + memory.workspace() + memory.staging();
}

}  // namespace muster
