// What an agent does so that what runs here becomes what the coordinator desires. Pure: the same two pictures give the
// same steps, so a lost, repeated or late message does no harm.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "muster/v1/worker.pb.h"
#include "worker/agent/rank_key.h"

namespace muster {

// A rank that this agent has started, or reported as not started.
struct LocalRank {
  int64_t device = 0;
  bool ended = false;  // its process is gone; it is never started again, the coordinator asks for a new attempt instead
  bool asked_to_stop = false;  // SIGTERM is out
  bool asked_to_die = false;   // SIGKILL is out
};

struct ConvergenceStep {
  enum class Kind {
    kStart,
    kStop,          // SIGTERM, then SIGKILL after the grace
    kKill,          // SIGKILL
    kReportAbsent,  // the coordinator wants it stopped and it is not here: say so, or it waits for ever
  };
  Kind kind = Kind::kStart;
  RankKey rank;
  std::string reason;  // of a stop or a kill, for people
};

// In the order in which to do them. A rank whose device is still held by another living rank is not started yet:
// converge again when that one has ended.
std::vector<ConvergenceStep> Converge(const v1::Desired& desired, const std::map<RankKey, LocalRank>& local);

}  // namespace muster
