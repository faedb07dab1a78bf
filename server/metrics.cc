#include "server/metrics.h"

#include <prometheus/text_serializer.h>

#include "common/rpc/metric_catalog.h"
#include "server/job/placement.h"

namespace muster {
namespace {

prometheus::Family<prometheus::Gauge>& MakeGauge(prometheus::Registry& registry, const char* name) {
  return prometheus::BuildGauge().Name(name).Help(MetricOf(name).help).Register(registry);
}

prometheus::Family<prometheus::Counter>& MakeCounter(prometheus::Registry& registry, const char* name) {
  return prometheus::BuildCounter().Name(name).Help(MetricOf(name).help).Register(registry);
}

}  // namespace

ServerMetrics::ServerMetrics(const std::string& version)
    : jobs_(MakeGauge(registry_, "muster_jobs")),
      workers_(MakeGauge(registry_, "muster_workers")),
      devices_(MakeGauge(registry_, "muster_devices")),
      restarts_(MakeCounter(registry_, "muster_restarts_total")),
      commits_(MakeCounter(registry_, "muster_store_commits_total").Add({})),
      commit_seconds_(MakeCounter(registry_, "muster_store_commit_seconds_total").Add({})) {
  MakeGauge(registry_, "muster_coordinator_info").Add({{"version", version}}).Set(1);
}

void ServerMetrics::Update(const JobTable& table, const WorkerRegistry& registry) {
  // Every state has a series, so that a graph shows 0 and not a gap.
  std::map<std::string, double> jobs;
  for (int state = v1::QUEUED; state <= v1::FAILED; ++state) jobs[StateName(static_cast<v1::JobState>(state))] = 0;
  std::map<std::string, double> restarts;
  for (int cause = server::STOPPED_UNASKED; cause < server::USER_ERROR; ++cause) {  // that one is never retried
    restarts[server::FailureCause_Name(static_cast<server::FailureCause>(cause))] = 0;
  }
  for (const auto& item : table.jobs()) {
    ++jobs[StateName(item.second->state())];
    for (const auto& cause : item.second->record.budget().restarts_by_cause()) {
      restarts[cause.first] += static_cast<double>(cause.second);
    }
  }
  for (const auto& state : jobs) jobs_.Add({{"state", state.first}}).Set(state.second);
  for (const auto& cause : restarts) {
    prometheus::Counter& counter = restarts_.Add({{"cause", cause.first}});
    if (cause.second > counter.Value()) counter.Increment(cause.second - counter.Value());
  }

  std::map<std::string, double> workers = {{"READY", 0}, {"UNREACHABLE", 0}, {"CORDONED", 0}};
  for (const auto& item : registry.workers()) ++workers[v1::WorkerState_Name(registry.View(item.first).state())];
  for (const auto& state : workers) workers_.Add({{"state", state.first}}).Set(state.second);

  std::map<std::string, double> devices = {{"free", 0}, {"busy", 0}, {"unavailable", 0}};
  for (const SchedulableWorker& worker : SnapshotDevices(table, registry)) {
    for (const SchedulableDevice& device : worker.devices) {
      const bool usable = worker.unusable.empty() && device.unusable.empty();
      ++devices[!device.free ? "busy" : usable ? "free" : "unavailable"];
    }
  }
  for (const auto& state : devices) devices_.Add({{"state", state.first}}).Set(state.second);
}

void ServerMetrics::OnCommit(double seconds) {
  commits_.Increment();
  commit_seconds_.Increment(seconds);
}

std::string ServerMetrics::Text() const { return prometheus::TextSerializer().Serialize(registry_.Collect()); }

}  // namespace muster
