// Whether a job whose gang died may try again: pure rules over the record of its restarts.
//
// Budgets belong to the job and count by cause. A user error never retries. Every other cause does, up to
// policy.max_restarts, and stops earlier when three attempts in a row got no further than the best before them: what
// fails at the same place each time will not be mended by trying.
#pragma once

#include <cstdint>
#include <string>

#include "server/store/records.pb.h"

namespace muster {

// Attempts in a row without progress that end a job. Three: one may be bad luck, two a coincidence.
inline constexpr int64_t kAttemptsWithoutProgress = 3;

struct AttemptOutcome {
  server::FailureCause cause = server::FAILURE_CAUSE_UNSPECIFIED;
  int64_t furthest_step = 0;    // that this attempt completed
  bool new_checkpoint = false;  // it wrote at least one: the next one begins later
};

struct RestartDecision {
  bool retry = false;
  std::string code;    // when not: "USER_ERROR", "RESTARTS_SPENT", "NO_PROGRESS"
  std::string reason;  // when not: one sentence
};

// Counts the outcome in `record` and says whether another attempt may start.
RestartDecision CountAndDecide(const AttemptOutcome& outcome, int64_t max_restarts,
                               server::RestartBudgetRecord* record);

// The cause that explains both: a rank that ran into bad data explains the neighbour that lost it.
server::FailureCause WorseCause(server::FailureCause a, server::FailureCause b);

// What a rank's end says of why its gang failed, when nobody had asked it to end.
server::FailureCause CauseOfExit(v1::ExitKind kind);

}  // namespace muster
