// The states of a job and the events that change them: one table, no time, no store, no threads.
//
//                    1 placed              2 training            3 finished
//       QUEUED ----------------> STARTING -----------> RUNNING ----------------> COMPLETED
//        ^  ^                     ^   |  \______________ | _______________________^ 4
//        |  |             7 placed|   |5 gang failed     |6 gang failed
//        |  |                     |   v                  v
//        |  | 8 devices lost      +---- RECOVERING <-----+
//        |  +---------------------------+
//        |
//        |  18 resume            14 gang dead
//        +------------ PAUSED <---------------- PAUSING <------- 10, 11, 12 pause: STARTING, RUNNING, RECOVERING
//        |                ^ 9 pause: QUEUED      ^ 13 pause
//        |  21 gang dead                         |
//        +---------------------------------- PREEMPTING <------- 19, 20 preempt: STARTING, RUNNING
//
//       25, 26 cancel: QUEUED, PAUSED -> CANCELLED (nothing runs)
//       27 to 31 cancel: STARTING, RUNNING, RECOVERING, PAUSING, PREEMPTING -> CANCELLING
//       32 gang dead, 33 timed out: CANCELLING -> CANCELLED
//       15, 22 timed out: PAUSING -> PAUSED, PREEMPTING -> QUEUED (a rank that does not end holds its device, not the
//       job) 16, 23 finished: PAUSING, PREEMPTING -> COMPLETED (the last step was faster) 17, 24, 34 to 37 failed:
//       PAUSING, PREEMPTING, QUEUED, STARTING, RUNNING, RECOVERING -> FAILED
//       38 more steps: COMPLETED -> QUEUED
//
// A gang that wants to go back (server/job/rewind.h) takes 6 and 7 as one that failed does, and is charged nothing.
//
// A "gang" is all ranks of one attempt. It is dead when no rank of it can train any more (server/job/gang.h).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "muster/v1/job.pb.h"

namespace muster {

enum class JobEvent {
  kPlaced,       // devices were found: an attempt begins
  kTraining,     // every rank trains
  kFinished,     // every rank has done all steps
  kGangFailed,   // a rank, worker or communicator failed, and may be tried again; or a new attempt is to begin for
                 // another reason
  kDevicesLost,  // no devices for another attempt
  kFailed,       // not retryable, budget spent, or start deadline passed
  kPause,
  kResume,
  kPreempt,
  kCancel,
  kGangDead,  // what was to be stopped has ended
  kTimedOut,  // what was to be stopped is given up
  kExtended,  // it was given more steps
};

const char* JobEventName(JobEvent event);  // "gang failed"

struct JobTransition {
  int number = 0;  // as in the drawing
  v1::JobState from = v1::JOB_STATE_UNSPECIFIED;
  JobEvent event = JobEvent::kPlaced;
  v1::JobState to = v1::JOB_STATE_UNSPECIFIED;
};

// Every transition that there is.
absl::Span<const JobTransition> JobTransitions();

// The state that `event` leads to. FAILED_PRECONDITION with reason ILLEGAL_STATE, naming state and event, when the
// table has no such transition.
absl::StatusOr<v1::JobState> NextState(v1::JobState from, JobEvent event);

// FAILED_PRECONDITION of a call that a job in its state does not take; `cannot`: "cannot trace job-3".
absl::Status WrongStateError(const v1::Job& job, absl::string_view cannot);

// COMPLETED, CANCELLED or FAILED: nothing changes any more by itself.
bool IsFinal(v1::JobState state);

// Whether the devices of the current attempt are the job's.
bool HoldsDevices(v1::JobState state);

std::string StateName(v1::JobState state);  // "QUEUED"

}  // namespace muster
