// Asks the ranks of a job for a timeline and carries it, as it comes, to whoever asked. Nothing of it is kept here.
//
// Owned by the coordinator; all calls on its loop.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/worker.pb.h"
#include "server/cluster/worker_registry.h"
#include "server/job/job_manager.h"

namespace muster {

// One that asked for a timeline. Owned by the caller of Open, until Close or OnEnd.
class TraceReader {
 public:
  virtual ~TraceReader() = default;
  virtual void OnChunk(const v1::TraceChunk& chunk) = 0;
  virtual void OnEnd(absl::Status end) = 0;
};

class TraceRelay {
 public:
  TraceRelay(const Clock* clock, JobTable* table, const WorkerRegistry* registry, GangSupervisor* supervisor,
             JobManager* manager)
      : clock_(clock), table_(table), registry_(registry), supervisor_(supervisor), manager_(manager) {}

  // FAILED_PRECONDITION when the job does not train, when a timeline of it is being recorded for somebody else, or when
  // a profiler is asked for that the rank's worker lacks. The reader's end is ABORTED when the attempt ends before
  // every rank has sent its part.
  absl::Status Open(const v1::TraceJobRequest& request, TraceReader* reader);
  void Close(TraceReader* reader);
  void OnReport(const v1::RankReport& report);

  // Notices attempts that ended. Called every few milliseconds.
  void Tick();
  // Ends every stream with this status: the coordinator ends.
  void EndAll(const absl::Status& status);

 private:
  struct Recording {
    TraceReader* reader = nullptr;  // null: it has gone, and what the ranks still record is for nobody
    int64_t attempt = 0;
    int64_t origin_nanos = 0;
    bool begun = false;
    std::set<int64_t> done;  // ranks
    int64_t dropped_spans = 0;
    int64_t first_step = 0;
    int64_t steps = 0;
  };

  absl::Status OpenProfile(const v1::ProfileRequest& request, JobEntry& entry, TraceReader* reader);

  const Clock* const clock_;
  JobTable* const table_;
  const WorkerRegistry* const registry_;
  GangSupervisor* const supervisor_;
  JobManager* const manager_;
  std::map<std::string, Recording> recordings_;  // by job id
  std::set<TraceReader*> profiling_;             // that wait for a commit
};

}  // namespace muster
