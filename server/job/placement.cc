#include "server/job/placement.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/proto_time.h"
#include "server/job/attempt.h"
#include "server/job/liveness.h"

namespace muster {
namespace {

using DeviceKey = std::pair<std::string, int64_t>;  // worker, index

std::map<DeviceKey, std::string> Holders(const JobTable& table, const WorkerRegistry& registry) {
  std::map<DeviceKey, std::string> holders;
  std::map<std::string, int64_t> attempts;
  for (const auto& item : table.jobs()) {
    const JobEntry& entry = *item.second;
    attempts[entry.id()] = entry.attempt();
    for (const server::RankRecord& rank : entry.record.ranks()) {
      if (rank.dead() && !HoldsDevices(entry.state())) continue;
      holders[{rank.worker(), rank.device()}] = entry.id();
    }
  }
  for (const auto& item : registry.workers()) {
    for (const auto& observed : item.second.observed) {
      const v1::ObservedRank& rank = observed.second;
      const auto attempt = attempts.find(rank.job_id());
      const bool current = attempt != attempts.end() && attempt->second == rank.attempt();
      if (rank.phase() == v1::RANK_EXITED || current) continue;
      holders[{item.first, rank.device()}] =
          absl::StrCat("a rank of attempt ", rank.attempt(), " of ", rank.job_id(), " that is being stopped");
    }
  }
  return holders;
}

std::string WhyUnusable(const WorkerRegistry::Worker& worker) {
  if (worker.lost) return "unreachable";
  if (worker.session == nullptr) return "not connected";
  if (!worker.record.cordoned()) return "";
  return worker.record.cordon_reason().empty() ? "cordoned" : absl::StrCat("cordoned: ", worker.record.cordon_reason());
}

}  // namespace

std::vector<SchedulableWorker> SnapshotDevices(const JobTable& table, const WorkerRegistry& registry) {
  const std::map<DeviceKey, std::string> holders = Holders(table, registry);
  std::vector<SchedulableWorker> workers;
  for (const auto& item : registry.workers()) {
    SchedulableWorker worker;
    worker.name = item.first;
    worker.unusable = WhyUnusable(item.second);
    for (const v1::Device& known : item.second.record.inventory().devices()) {
      SchedulableDevice device;
      device.index = known.index();
      device.kind = known.kind();
      device.memory_bytes = known.memory_bytes();
      device.unusable = known.unhealthy_reason();
      const auto holder = holders.find({item.first, known.index()});
      device.free = holder == holders.end();
      if (!device.free) device.holder = holder->second;
      worker.devices.push_back(std::move(device));
    }
    workers.push_back(std::move(worker));
  }
  return workers;
}

GangRequest RequestOf(const v1::Job& job) {
  GangRequest request;
  request.device_kind = job.resolved_spec().resources().device();
  request.rank_bytes.assign(job.resolved_spec().resources().ranks(), 0);
  for (const v1::PlanRank& rank : job.plan().ranks()) {
    if (rank.rank() < static_cast<int64_t>(request.rank_bytes.size())) {
      request.rank_bytes[rank.rank()] = rank.total_bytes();
    }
  }
  return request;
}

std::vector<WaitingJob> WaitingJobs(const JobTable& table, const WorkerRegistry& registry) {
  std::vector<WaitingJob> jobs;
  for (const auto& item : table.jobs()) {
    const JobEntry& entry = *item.second;
    if (entry.state() != v1::QUEUED) continue;
    WaitingJob waiting;
    waiting.id = entry.id();
    waiting.priority = entry.record.job().resolved_spec().policy().priority();
    waiting.order = absl::ToUnixNanos(FromProto(entry.record.queued_at()));
    waiting.gang = RequestOf(entry.record.job());
    if (!IsGangDead(entry, registry)) {
      waiting.not_before =
          absl::StrCat("waits for the ranks of attempt ", entry.attempt(), " to end on ", Places(entry.record));
    }
    jobs.push_back(std::move(waiting));
  }
  return jobs;
}

void ShowWaiting(const WaitingStatus& status, JobTable& table) {
  JobEntry& entry = *table.Find(status.job_id);
  v1::Job* job = entry.record.mutable_job();
  v1::QueueStatus* queue = job->mutable_queue_status();
  if (queue->position() == status.position && queue->length() == status.length && queue->reason() == status.reason) {
    return;
  }
  queue->set_position(status.position);
  queue->set_length(status.length);
  queue->set_reason(status.reason);
  job->set_state_reason(status.reason);
  job->set_state_reason_code("WAITING_FOR_DEVICES");
  table.Touch(entry);
}

std::vector<DeviceChoice> PlaceAgain(const JobEntry& entry, const JobTable& table, const WorkerRegistry& registry) {
  std::vector<SchedulableWorker> workers = SnapshotDevices(table, registry);
  std::map<DeviceKey, bool> usable;
  for (SchedulableWorker& worker : workers) {
    for (SchedulableDevice& device : worker.devices) {
      if (device.holder == entry.id()) device.free = true;
      usable[{worker.name, device.index}] = worker.unusable.empty() && device.unusable.empty() && device.free;
    }
  }
  std::vector<DeviceChoice> same;
  for (const server::RankRecord& rank : entry.record.ranks()) {
    if (usable[{rank.worker(), rank.device()}]) same.push_back({rank.worker(), rank.device()});
  }
  if (!same.empty() && static_cast<int>(same.size()) == entry.record.ranks_size()) return same;
  return PlaceGang(workers, RequestOf(entry.record.job()));
}

}  // namespace muster
