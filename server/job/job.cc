#include "server/job/job.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/rpc/grpc_status.h"

namespace muster {
namespace {

using v1::CANCELLED;
using v1::CANCELLING;
using v1::COMPLETED;
using v1::FAILED;
using v1::PAUSED;
using v1::PAUSING;
using v1::PREEMPTING;
using v1::QUEUED;
using v1::RECOVERING;
using v1::RUNNING;
using v1::STARTING;

constexpr JobTransition kTransitions[] = {
    {1, QUEUED, JobEvent::kPlaced, STARTING},
    {2, STARTING, JobEvent::kTraining, RUNNING},
    {3, RUNNING, JobEvent::kFinished, COMPLETED},
    {4, STARTING, JobEvent::kFinished, COMPLETED},
    {5, STARTING, JobEvent::kGangFailed, RECOVERING},
    {6, RUNNING, JobEvent::kGangFailed, RECOVERING},
    {7, RECOVERING, JobEvent::kPlaced, STARTING},
    {8, RECOVERING, JobEvent::kDevicesLost, QUEUED},
    {9, QUEUED, JobEvent::kPause, PAUSED},
    {10, STARTING, JobEvent::kPause, PAUSING},
    {11, RUNNING, JobEvent::kPause, PAUSING},
    {12, RECOVERING, JobEvent::kPause, PAUSING},
    {13, PREEMPTING, JobEvent::kPause, PAUSING},
    {14, PAUSING, JobEvent::kGangDead, PAUSED},
    {15, PAUSING, JobEvent::kTimedOut, PAUSED},
    {16, PAUSING, JobEvent::kFinished, COMPLETED},
    {17, PAUSING, JobEvent::kFailed, FAILED},
    {18, PAUSED, JobEvent::kResume, QUEUED},
    {19, STARTING, JobEvent::kPreempt, PREEMPTING},
    {20, RUNNING, JobEvent::kPreempt, PREEMPTING},
    {21, PREEMPTING, JobEvent::kGangDead, QUEUED},
    {22, PREEMPTING, JobEvent::kTimedOut, QUEUED},
    {23, PREEMPTING, JobEvent::kFinished, COMPLETED},
    {24, PREEMPTING, JobEvent::kFailed, FAILED},
    {25, QUEUED, JobEvent::kCancel, CANCELLED},
    {26, PAUSED, JobEvent::kCancel, CANCELLED},
    {27, STARTING, JobEvent::kCancel, CANCELLING},
    {28, RUNNING, JobEvent::kCancel, CANCELLING},
    {29, RECOVERING, JobEvent::kCancel, CANCELLING},
    {30, PAUSING, JobEvent::kCancel, CANCELLING},
    {31, PREEMPTING, JobEvent::kCancel, CANCELLING},
    {32, CANCELLING, JobEvent::kGangDead, CANCELLED},
    {33, CANCELLING, JobEvent::kTimedOut, CANCELLED},
    {34, QUEUED, JobEvent::kFailed, FAILED},
    {35, STARTING, JobEvent::kFailed, FAILED},
    {36, RUNNING, JobEvent::kFailed, FAILED},
    {37, RECOVERING, JobEvent::kFailed, FAILED},
    {38, COMPLETED, JobEvent::kExtended, QUEUED},
};

}  // namespace

absl::Span<const JobTransition> JobTransitions() { return kTransitions; }

const char* JobEventName(JobEvent event) {
  switch (event) {
    case JobEvent::kPlaced:
      return "placed";
    case JobEvent::kTraining:
      return "training";
    case JobEvent::kFinished:
      return "finished";
    case JobEvent::kGangFailed:
      return "gang failed";
    case JobEvent::kDevicesLost:
      return "devices lost";
    case JobEvent::kFailed:
      return "failed";
    case JobEvent::kPause:
      return "pause";
    case JobEvent::kResume:
      return "resume";
    case JobEvent::kPreempt:
      return "preempt";
    case JobEvent::kCancel:
      return "cancel";
    case JobEvent::kGangDead:
      return "gang dead";
    case JobEvent::kTimedOut:
      return "timed out";
    case JobEvent::kExtended:
      return "more steps";
  }
  MUSTER_CHECK(false, "event ", static_cast<int>(event));
  return "";
}

absl::StatusOr<v1::JobState> NextState(v1::JobState from, JobEvent event) {
  for (const JobTransition& transition : kTransitions) {
    if (transition.from == from && transition.event == event) return transition.to;
  }
  return ErrorWithInfo(absl::StatusCode::kFailedPrecondition, "ILLEGAL_STATE",
                       absl::StrCat("a job that is ", StateName(from), " does not take \"", JobEventName(event), "\""),
                       {{"state", StateName(from)}, {"event", JobEventName(event)}});
}

absl::Status WrongStateError(const v1::Job& job, absl::string_view cannot) {
  return PreconditionError("ILLEGAL_STATE", absl::StrCat("jobs/", job.id()),
                           absl::StrCat(cannot, ": it is ", StateName(job.state())),
                           {{"job", job.id()}, {"state", StateName(job.state())}});
}

bool IsFinal(v1::JobState state) { return state == COMPLETED || state == CANCELLED || state == FAILED; }

bool HoldsDevices(v1::JobState state) {
  return state == STARTING || state == RUNNING || state == RECOVERING || state == PAUSING || state == PREEMPTING ||
         state == CANCELLING;
}

std::string StateName(v1::JobState state) { return v1::JobState_Name(state); }

}  // namespace muster
