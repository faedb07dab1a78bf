// Which waiting job starts on which devices: a pure function from a snapshot to decisions.
//
// A gang is placed whole or not at all. Jobs go by priority, then by age. A job that could start if the devices in use
// were free holds back the jobs behind it, so that small jobs never starve a large one; a job that the registered
// workers could not hold even when idle holds back nobody.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

struct SchedulableDevice {
  int64_t index = 0;
  std::string kind;          // "cpu", "cuda"
  int64_t memory_bytes = 0;  // what one rank may use
  bool free = false;         // no rank lives on it and none is promised
  std::string holder;        // id of the job that has it, when not free
  std::string unusable;      // why it takes no rank, empty when healthy
};

struct SchedulableWorker {
  std::string name;
  std::string unusable;  // "cordoned: new disk", "unreachable"; empty when it takes ranks
  std::vector<SchedulableDevice> devices;
};

struct GangRequest {
  std::string device_kind;
  std::vector<int64_t> rank_bytes;  // what each rank takes on its device, in rank order
};

struct DeviceChoice {
  std::string worker;
  int64_t device = 0;
};

struct WaitingJob {
  std::string id;
  int64_t priority = 0;  // higher goes first
  int64_t order = 0;     // lower goes first among equals
  GangRequest gang;
  std::string not_before;  // why it may not start yet, whatever is free; empty when it may
};

struct ScheduleSnapshot {
  std::vector<SchedulableWorker> workers;
  std::vector<WaitingJob> waiting;
};

struct ScheduledGang {
  std::string job_id;
  std::vector<DeviceChoice> ranks;  // in rank order
};

struct WaitingStatus {
  std::string job_id;
  int64_t position = 0;  // from 1
  int64_t length = 0;    // of the queue
  std::string reason;    // one sentence
};

struct Schedule {
  std::vector<ScheduledGang> start;
  std::vector<WaitingStatus> wait;  // in order
};

Schedule MakeSchedule(ScheduleSnapshot snapshot);

// What each rank of a gang of `ranks` may use where the job does not say: the most that so many devices of the kind
// have, free or not. 0 when there are not so many.
int64_t MemoryForEachRank(const std::vector<SchedulableWorker>& workers, const std::string& device_kind, int64_t ranks);

// Devices for one gang among the free ones, in rank order; empty when there are not enough. The worker with the fewest
// free devices that holds the whole gang is taken; without one, workers with the most free devices first, ranks filling
// one after the other, so that neighbouring ranks share a host.
std::vector<DeviceChoice> PlaceGang(const std::vector<SchedulableWorker>& workers, const GangRequest& gang);

}  // namespace muster
