// What the end of a rank means and how it reads. Pure.
#pragma once

#include <string>

#include "server/store/records.pb.h"

namespace muster {

struct RankEnd {
  bool expected = false;                                           // it was done, or was told to end
  server::FailureCause cause = server::FAILURE_CAUSE_UNSPECIFIED;  // when not expected
  std::string message;                                             // "rank 2 was killed by signal 9 on worker-0"
};

// `exit` is null when its agent no longer lists the rank and cannot say how it ended.
RankEnd DescribeEnd(const server::RankRecord& rank, const v1::RankExit* exit);

}  // namespace muster
