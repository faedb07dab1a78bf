// Between jobs and workers on one side and the scheduler's plain structs on the other.
//
// A device is taken while a job that holds its devices was placed on it, and while any rank lives on it, of whatever
// attempt.
#pragma once

#include <vector>

#include "server/cluster/worker_registry.h"
#include "server/job/job_table.h"
#include "server/scheduler/scheduler.h"

namespace muster {

std::vector<SchedulableWorker> SnapshotDevices(const JobTable& table, const WorkerRegistry& registry);

GangRequest RequestOf(const v1::Job& job);

// The jobs that are queued. One whose earlier ranks may still live says what it waits for.
std::vector<WaitingJob> WaitingJobs(const JobTable& table, const WorkerRegistry& registry);
// Shows people where a job stands in the queue and what it waits for.
void ShowWaiting(const WaitingStatus& status, JobTable& table);

// Devices for the next attempt of a job that still has its own: the same again when all of them take ranks, else
// others. Empty when there are not enough.
std::vector<DeviceChoice> PlaceAgain(const JobEntry& entry, const JobTable& table, const WorkerRegistry& registry);

}  // namespace muster
