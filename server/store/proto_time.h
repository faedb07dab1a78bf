// Times and durations as the messages write them. Free functions, no state.
#pragma once

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace muster {

inline google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp message;
  const int64_t nanos = absl::ToUnixNanos(time);
  message.set_seconds(nanos / 1000000000);
  message.set_nanos(static_cast<int32_t>(nanos % 1000000000));
  return message;
}

inline absl::Time FromProto(const google::protobuf::Timestamp& message) {
  return absl::FromUnixSeconds(message.seconds()) + absl::Nanoseconds(message.nanos());
}

inline google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration message;
  const int64_t nanos = absl::ToInt64Nanoseconds(duration);
  message.set_seconds(nanos / 1000000000);
  message.set_nanos(static_cast<int32_t>(nanos % 1000000000));
  return message;
}

inline absl::Duration FromProto(const google::protobuf::Duration& message) {
  return absl::Seconds(message.seconds()) + absl::Nanoseconds(message.nanos());
}

}  // namespace muster
