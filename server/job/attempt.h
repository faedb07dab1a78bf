// One attempt of a job: what its record says, how it begins and what its ranks are told. Pure functions over the
// record.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/scheduler/scheduler.h"
#include "server/store/records.pb.h"

namespace muster {

// Makes the record that of the next attempt on these devices: number, ranks, the checkpoint to resume from, the
// checkpoints to delete, but for the paths that are `needed` by other jobs. Returns a sentence for people: what ended
// the attempt before, where this one runs and from where it goes on.
std::string PrepareAttempt(const std::vector<DeviceChoice>& choices, const std::set<std::string>& needed,
                           absl::Time now, server::JobRecord* record);

// What a new attempt resumes from: the newest checkpoint on the lineage, at or before `at_most_step` unless that is 0,
// or else that of the other job with which this one began. An empty path: from the beginning.
v1::Checkpoint ResumePointOf(const server::JobRecord& record, int64_t at_most_step);

// Every rank that is not dead is to be told so. Returns whether that is news to any.
bool OrderRanks(v1::AssignmentAction action, server::JobRecord* record);

// Every rank has done all steps.
bool AllCompleted(const server::JobRecord& record);

// No rank that is dead failed: each has done all steps or stopped as it was asked.
bool AllEndedWell(const server::JobRecord& record);

// A rank ended, or was lost, before its time.
bool AnyEndedEarly(const server::JobRecord& record);

// "worker-0 (2 ranks), worker-1 (2 ranks)"
std::string Places(const server::JobRecord& record);

}  // namespace muster
