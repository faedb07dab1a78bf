// Why a rank ended, in the words that the job's history keeps. Pure.
#pragma once

#include <string>
#include <vector>

#include "muster/v1/worker.pb.h"
#include "worker/agent/child_process.h"

namespace muster {

// What the agent knows beside the wait status.
struct ExitContext {
  std::string killed_because;             // why this agent killed it; empty: it did not
  bool asked_to_stop = false;             // it got SIGTERM from this agent
  bool kernel_killed_for_memory = false;  // the kernel's out-of-memory killer was active while it ran
  std::vector<std::string> last_lines;    // the end of its log
  v1::RankFinished reported;              // empty when it did not come through
};

// Without the time, which the caller stamps.
v1::RankExit ExplainExit(const ChildEnd& end, const ExitContext& context);

// The text behind the last "muster-rank: error: " in these lines; empty without one.
std::string LastErrorLine(const std::vector<std::string>& lines);

// "signal 9 (Killed)"
std::string SignalName(int signal);

}  // namespace muster
