// The histories of all jobs' metrics: taken from their reports, written to the store every two seconds and when the job
// ends, and read from there again when somebody asks. A coordinator that is killed loses the newest of those seconds
// and nothing else.
//
// Owned by the coordinator; all calls on its loop.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "muster/v1/worker.pb.h"
#include "server/job/job_manager.h"
#include "server/job/metric_history.h"
#include "server/store/store.h"

namespace muster {

class MetricStore {
 public:
  MetricStore(const Clock* clock, Store* store, JobTable* table, JobManager* manager)
      : clock_(clock), store_(store), table_(table), manager_(manager) {}

  // A report that the job has taken up.
  void OnReport(const v1::RankReport& report);

  // QueryMetrics. INVALID_ARGUMENT for a name that there is not.
  absl::StatusOr<v1::QueryMetricsResponse> Query(const v1::QueryMetricsRequest& request);

  // Writes what changed. Called every few milliseconds.
  void Tick();

 private:
  struct Held {
    MetricHistory history;
    size_t stored_chunks = 0;
  };

  absl::StatusOr<Held*> HistoryOf(const JobEntry& entry);
  // False when there was nothing to write.
  bool Write(int64_t number, Held& held);

  const Clock* const clock_;
  Store* const store_;
  JobTable* const table_;
  JobManager* const manager_;
  std::map<int64_t, std::unique_ptr<Held>> histories_;  // by job number: of those that train, or were asked for
  absl::Duration next_write_ = absl::ZeroDuration();
};

}  // namespace muster
