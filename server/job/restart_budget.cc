#include "server/job/restart_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster {

RestartDecision CountAndDecide(const AttemptOutcome& outcome, int64_t max_restarts,
                               server::RestartBudgetRecord* record) {
  if (outcome.cause == server::USER_ERROR) {
    return {false, "USER_ERROR", "trying again would not help: the job itself is at fault"};
  }
  const bool progress = outcome.furthest_step > record->best_step() || outcome.new_checkpoint;
  record->set_best_step(std::max(record->best_step(), outcome.furthest_step));
  record->set_attempts_without_progress(progress ? 0 : record->attempts_without_progress() + 1);
  if (record->attempts_without_progress() >= kAttemptsWithoutProgress) {
    return {
        false, "NO_PROGRESS",
        absl::StrCat(kAttemptsWithoutProgress, " attempts in a row got no further than step ", record->best_step())};
  }
  if (record->restarts() >= max_restarts) {
    return {false, "RESTARTS_SPENT", absl::StrCat("policy.max_restarts is ", max_restarts, " and all are spent")};
  }
  record->set_restarts(record->restarts() + 1);
  ++(*record->mutable_restarts_by_cause())[server::FailureCause_Name(outcome.cause)];
  return {true, "", ""};
}

server::FailureCause WorseCause(server::FailureCause a, server::FailureCause b) { return std::max(a, b); }

server::FailureCause CauseOfExit(v1::ExitKind kind) {
  switch (kind) {
    case v1::EXIT_USER_ERROR:
      return server::USER_ERROR;
    case v1::EXIT_OUT_OF_MEMORY:
      return server::OUT_OF_MEMORY;
    case v1::EXIT_BAD_CHECKPOINT:
      return server::BAD_CHECKPOINT;
    case v1::EXIT_CRASHED:
      return server::CRASHED;
    case v1::EXIT_NOT_STARTED:
      return server::NOT_STARTED;
    case v1::EXIT_REWIND:
      return server::REWIND;
    case v1::EXIT_KILLED:
    case v1::EXIT_STOPPED:
      return server::STOPPED_UNASKED;
    default:
      return server::INFRASTRUCTURE;
  }
}

}  // namespace muster
