// What /metrics of musterd shows. Figures of single jobs are exported by the workers that run them.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <map>
#include <string>

#include "server/cluster/worker_registry.h"
#include "server/job/job_table.h"

namespace muster {

// Owned by the coordinator. Update on its loop; the rest on any thread.
class ServerMetrics {
 public:
  explicit ServerMetrics(const std::string& version);

  // Takes over how things stand. Called every second or so.
  void Update(const JobTable& table, const WorkerRegistry& registry);

  // One transaction of the store took so long.
  void OnCommit(double seconds);

  // The text exposition format.
  std::string Text() const;

 private:
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Gauge>& jobs_;
  prometheus::Family<prometheus::Gauge>& workers_;
  prometheus::Family<prometheus::Gauge>& devices_;
  prometheus::Family<prometheus::Counter>& restarts_;
  prometheus::Counter& commits_;
  prometheus::Counter& commit_seconds_;
};

}  // namespace muster
