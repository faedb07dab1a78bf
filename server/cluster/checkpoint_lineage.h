// Which checkpoint a new attempt resumes from, and which are needed no longer. Pure functions over a job's checkpoints.
//
// The lineage is the line of checkpoints that led to the current attempt. Attempt 8 that resumed from step 400 of
// attempt 7 takes every later checkpoint of attempt 7 off it: those belong to a future that did not happen, whoever
// wrote them and when.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "google/protobuf/repeated_ptr_field.h"
#include "muster/v1/job.pb.h"

namespace muster {

using Checkpoints = google::protobuf::RepeatedPtrField<v1::Checkpoint>;

// Adds what a rank of the current attempt reported, on the lineage. Ranks report their shares of one checkpoint one by
// one: bytes add up, seconds are the slowest's. Returns true for the first report of a checkpoint.
bool RecordCheckpoint(const v1::Checkpoint& reported, Checkpoints* checkpoints);

// The newest on the lineage, at or before `at_most_step` unless that is 0. An empty path when there is none: begin
// anew.
v1::Checkpoint ResumePoint(const Checkpoints& checkpoints, int64_t at_most_step);

// Forgets a checkpoint that turned out to be unreadable, and leaves what there is of it on disk. An empty path, or one
// that is not known, changes nothing.
void ForgetCheckpoint(const std::string& path, Checkpoints* checkpoints);

// Takes off the lineage all that lies behind the resume point of a new attempt.
void CutLineage(const v1::Checkpoint& resume_point, Checkpoints* checkpoints);

// Forgets all but the newest `keep` (at least 1) on the lineage and returns the paths of the forgotten, to be deleted.
// None of the paths `in_use` is among them: the running attempt, or the fork of another job, may still have to read it.
std::vector<std::string> TrimCheckpoints(int64_t keep, const std::set<std::string>& in_use, Checkpoints* checkpoints);

}  // namespace muster
