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

// Devices for the next attempt of a job that still has its own: the same again when all of them take ranks, else
// others. Empty when there are not enough.
std::vector<DeviceChoice> PlaceAgain(const JobEntry& entry, const JobTable& table, const WorkerRegistry& registry);

}  // namespace muster
