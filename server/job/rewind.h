// What becomes of a job whose ranks want to go back, because of a spike of the loss or a value that is not finite: from
// which checkpoint the next attempt resumes and which samples are never seen again. Pure functions over the record.
//
// A rewind is charged to no restart budget, and has one of its own: policy.max_rewinds. Each moves on, since the
// samples behind it are others than those before.
#pragma once

#include <cstdint>
#include <string>

#include "server/store/records.pb.h"

namespace muster {

// Keeps what a rank of the current attempt asked for; they all ask for the same.
void NoteRewind(const v1::Rewind& rewind, server::JobRecord* record);

// Whether policy.max_rewinds forbids the pending one. False when none is pending.
bool RewindsSpent(const server::JobRecord& record);

// Before an attempt resumes: takes off the lineage what lies behind the pending rewind's target, so that the attempt
// resumes from the newest checkpoint at or before it; from the oldest where all that are kept are newer; from the
// beginning where the target is the beginning. Does nothing when no rewind is pending. `attempt`: that asked for it.
void TakeUpRewind(int64_t attempt, server::JobRecord* record);

// The sample with which an attempt that resumes from record.resumed_from goes on in spite of its checkpoint; 0: the
// checkpoint's. Holds until the lineage has a checkpoint that was written behind the rewind.
int64_t NextSample(const server::JobRecord& record);

// The event of the newest rewind, once resumed_from is set.
std::string RewindEventType(const server::JobRecord& record);  // "LOSS_SPIKE_REWIND"
// "step 81: loss ...; goes back to the checkpoint of step 70, without samples 560 to 647"
std::string RewindSentence(const server::JobRecord& record);

}  // namespace muster
