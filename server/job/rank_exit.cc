#include "server/job/rank_exit.h"

#include "absl/strings/str_cat.h"
#include "server/job/restart_budget.h"

namespace muster {

RankEnd DescribeEnd(const server::RankRecord& rank, const v1::RankExit* exit) {
  RankEnd end;
  const bool asked = rank.action() != v1::RUN;
  if (exit == nullptr) {
    end.expected = asked;
    end.cause = server::WORKER_LOST;
    end.message =
        absl::StrCat("rank ", rank.rank(), asked ? " is gone from " : " ended with the agent of ", rank.worker());
    return end;
  }
  end.expected = exit->kind() == v1::EXIT_COMPLETED || (asked && exit->kind() == v1::EXIT_STOPPED) ||
                 (rank.action() == v1::KILL && exit->kind() != v1::EXIT_USER_ERROR);
  end.cause = CauseOfExit(exit->kind());
  end.message = absl::StrCat("rank ", rank.rank());
  if (rank.action() == v1::KILL && exit->kind() == v1::EXIT_KILLED) {
    // The signal is how it was made to end, not why: that is what the job's state says.
    absl::StrAppend(&end.message, " stopped on ", rank.worker());
    return end;
  }
  switch (exit->kind()) {
    case v1::EXIT_COMPLETED:
      absl::StrAppend(&end.message, " is done");
      break;
    case v1::EXIT_STOPPED:
      absl::StrAppend(&end.message, " stopped");
      break;
    case v1::EXIT_REWIND:
      absl::StrAppend(&end.message, " ended to rewind");
      break;
    case v1::EXIT_NOT_STARTED:
      absl::StrAppend(&end.message, " could not be started");
      break;
    case v1::EXIT_OUT_OF_MEMORY:
      absl::StrAppend(&end.message, " was killed for memory");
      break;
    default:
      if (exit->signal() != 0) {
        absl::StrAppend(&end.message, " was killed by signal ", exit->signal());
      } else {
        absl::StrAppend(&end.message, " exited with code ", exit->exit_code());
      }
  }
  absl::StrAppend(&end.message, " on ", rank.worker());
  if (!exit->message().empty() && exit->kind() != v1::EXIT_COMPLETED) {
    absl::StrAppend(&end.message, ": ", exit->message());
  }
  return end;
}

}  // namespace muster
