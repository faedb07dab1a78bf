#include "server/scheduler/scheduler.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/format_bytes.h"

namespace muster {
namespace {

int64_t LargestRank(const GangRequest& gang) {
  return gang.rank_bytes.empty() ? 0 : *std::max_element(gang.rank_bytes.begin(), gang.rank_bytes.end());
}

// Every rank is placed as if it were the largest: ranks of one gang differ little, and any order of devices then works.
bool CouldHold(const SchedulableDevice& device, const GangRequest& gang) {
  return device.unusable.empty() && device.kind == gang.device_kind && device.memory_bytes >= LargestRank(gang);
}

std::string Devices(int64_t count, const std::string& kind) {
  return absl::StrCat(count, " ", kind, count == 1 ? " device" : " devices");
}

// What stands in the way of a gang, counted over the whole cluster.
std::string WhyNot(const std::vector<SchedulableWorker>& workers, const GangRequest& gang) {
  int64_t fitting = 0;
  int64_t free = 0;
  int64_t too_small = 0;
  int64_t unhealthy = 0;
  std::set<std::string> holders;
  std::vector<std::string> notes;
  for (const SchedulableWorker& worker : workers) {
    int64_t free_here = 0;
    for (const SchedulableDevice& device : worker.devices) {
      if (device.kind != gang.device_kind) continue;
      if (!device.unusable.empty()) {
        ++unhealthy;
      } else if (device.memory_bytes < LargestRank(gang)) {
        ++too_small;
      } else if (worker.unusable.empty()) {
        ++fitting;
        free += device.free;
        if (!device.free && !device.holder.empty()) holders.insert(device.holder);
      }
      free_here += device.free;
    }
    if (!worker.unusable.empty() && free_here > 0) {
      notes.push_back(absl::StrCat(worker.name, " has ", free_here, " free but is ", worker.unusable));
    }
  }
  const auto wanted = static_cast<int64_t>(gang.rank_bytes.size());
  std::string reason = absl::StrCat("waits for ", Devices(wanted, gang.device_kind));
  if (too_small > 0) {
    absl::StrAppend(&reason, " of at least ", FormatBytes(LargestRank(gang)));
    notes.insert(notes.begin(), absl::StrCat(too_small, " more are too small"));
  }
  if (unhealthy > 0) notes.push_back(absl::StrCat(unhealthy, " are out of order"));
  absl::StrAppend(&reason, "; ", free, " of ", fitting, " are free");
  if (!holders.empty()) absl::StrAppend(&reason, ", the rest is held by ", absl::StrJoin(holders, ", "));
  if (fitting < wanted) notes.push_back("start more workers to hold it");
  for (const std::string& note : notes) absl::StrAppend(&reason, "; ", note);
  return reason;
}

std::vector<SchedulableWorker> AsIfIdle(std::vector<SchedulableWorker> workers) {
  for (SchedulableWorker& worker : workers) {
    for (SchedulableDevice& device : worker.devices) device.free = true;
  }
  return workers;
}

void Take(std::vector<SchedulableWorker>& workers, const ScheduledGang& gang) {
  std::set<std::pair<std::string, int64_t>> taken;
  for (const DeviceChoice& choice : gang.ranks) taken.emplace(choice.worker, choice.device);
  for (SchedulableWorker& worker : workers) {
    for (SchedulableDevice& device : worker.devices) {
      if (taken.count({worker.name, device.index}) == 0) continue;
      device.free = false;
      device.holder = gang.job_id;
    }
  }
}

}  // namespace

int64_t MemoryForEachRank(const std::vector<SchedulableWorker>& workers, const std::string& device_kind,
                          int64_t ranks) {
  std::vector<int64_t> memory_bytes;
  for (const SchedulableWorker& worker : workers) {
    for (const SchedulableDevice& device : worker.devices) {
      if (device.kind == device_kind && device.unusable.empty()) memory_bytes.push_back(device.memory_bytes);
    }
  }
  if (ranks < 1 || static_cast<int64_t>(memory_bytes.size()) < ranks) return 0;
  const auto last_of_the_gang = memory_bytes.begin() + (ranks - 1);
  std::nth_element(memory_bytes.begin(), last_of_the_gang, memory_bytes.end(), std::greater<>());
  return *last_of_the_gang;
}

std::vector<DeviceChoice> PlaceGang(const std::vector<SchedulableWorker>& workers, const GangRequest& gang) {
  const size_t wanted = gang.rank_bytes.size();
  std::vector<std::vector<DeviceChoice>> offers;  // the free devices of each worker
  for (const SchedulableWorker& worker : workers) {
    if (!worker.unusable.empty()) continue;
    std::vector<DeviceChoice> offer;
    for (const SchedulableDevice& device : worker.devices) {
      if (device.free && CouldHold(device, gang)) offer.push_back({worker.name, device.index});
    }
    if (!offer.empty()) offers.push_back(std::move(offer));
  }
  std::stable_sort(offers.begin(), offers.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  // The last that is large enough alone is the smallest such.
  const auto alone = std::find_if(offers.rbegin(), offers.rend(), [&](const auto& o) { return o.size() >= wanted; });
  if (alone != offers.rend()) {
    alone->resize(wanted);
    return *alone;
  }
  std::vector<DeviceChoice> choices;
  for (const std::vector<DeviceChoice>& offer : offers) {
    for (const DeviceChoice& choice : offer) {
      if (choices.size() < wanted) choices.push_back(choice);
    }
  }
  if (choices.size() < wanted) choices.clear();
  return choices;
}

Schedule MakeSchedule(ScheduleSnapshot snapshot) {
  std::sort(snapshot.waiting.begin(), snapshot.waiting.end(), [](const WaitingJob& a, const WaitingJob& b) {
    return std::make_pair(-a.priority, a.order) < std::make_pair(-b.priority, b.order);
  });
  Schedule schedule;
  std::string held_back_by;
  for (const WaitingJob& job : snapshot.waiting) {
    std::string reason = job.not_before;
    if (reason.empty() && !held_back_by.empty()) reason = absl::StrCat("waits behind ", held_back_by);
    if (reason.empty()) {
      ScheduledGang gang{job.id, PlaceGang(snapshot.workers, job.gang)};
      if (!gang.ranks.empty()) {
        Take(snapshot.workers, gang);
        schedule.start.push_back(std::move(gang));
        continue;
      }
      reason = WhyNot(snapshot.workers, job.gang);
      if (!PlaceGang(AsIfIdle(snapshot.workers), job.gang).empty()) held_back_by = job.id;
    }
    schedule.wait.push_back({job.id, static_cast<int64_t>(schedule.wait.size()) + 1, 0, reason});
  }
  for (WaitingStatus& status : schedule.wait) status.length = static_cast<int64_t>(schedule.wait.size());
  return schedule;
}

}  // namespace muster
