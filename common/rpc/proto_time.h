// absl's times inside, protobuf's at the edge. Any thread.
#pragma once

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace muster {

inline google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp result;
  const int64_t seconds = absl::ToUnixSeconds(time);
  result.set_seconds(seconds);
  result.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return result;
}

inline absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

inline google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration result;
  result.set_seconds(absl::ToInt64Seconds(duration));
  result.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration - absl::Seconds(result.seconds()))));
  return result;
}

inline absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

}  // namespace muster
