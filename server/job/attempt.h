// One attempt of a job: what its record says, how it begins and what its ranks are told. Pure functions over the
// record.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/scheduler/scheduler.h"
#include "server/store/records.pb.h"

namespace muster {

// Makes the record that of the next attempt on these devices: number, ranks, the checkpoint to resume from, the
// checkpoints to delete. Returns a sentence for people: what ended the attempt before, where this one runs and from
// where it goes on.
std::string PrepareAttempt(const std::vector<DeviceChoice>& choices, absl::Time now, server::JobRecord* record);

// Every rank that is not dead is to be told so. Returns whether that is news to any.
bool OrderRanks(v1::AssignmentAction action, server::JobRecord* record);

// Every rank has done all steps.
bool AllCompleted(const server::JobRecord& record);

// A rank ended, or was lost, before its time.
bool AnyEndedEarly(const server::JobRecord& record);

// "worker-0 (2 ranks), worker-1 (2 ranks)"
std::string Places(const server::JobRecord& record);

}  // namespace muster
