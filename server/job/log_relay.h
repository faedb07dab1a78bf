// Carries logs from the agents that have them to whoever asks. Nothing of them is kept here.
//
// Owned by the coordinator; all calls on its loop.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "muster/v1/worker.pb.h"
#include "server/cluster/worker_registry.h"
#include "server/job/job_table.h"

namespace muster {

// One that asked for logs. Owned by the caller of Open, until Close or OnEnd.
class LogReader {
 public:
  virtual ~LogReader() = default;
  virtual void OnChunk(const v1::LogChunk& chunk) = 0;
  virtual void OnEnd(absl::Status end) = 0;
};

class LogRelay {
 public:
  LogRelay(JobTable* table, WorkerRegistry* registry) : table_(table), registry_(registry) {}

  // Asks every agent that has ranks of the attempt. NOT_FOUND for an unknown job or attempt, or one that was never
  // placed; UNAVAILABLE naming a worker that is not connected. Who follows gets the later attempts too, until the job
  // ends.
  absl::Status Open(const v1::StreamLogsRequest& request, LogReader* reader);
  void Close(LogReader* reader);
  void OnReply(const std::string& worker, const v1::LogReply& reply);

  // Notices agents that went away and attempts that began. Called every few milliseconds.
  void Tick();

  // Ends every stream with this status: the coordinator ends.
  void EndAll(const absl::Status& status);

 private:
  struct Stream {
    LogReader* reader = nullptr;
    v1::StreamLogsRequest request;
    std::string job_id;
    int64_t attempt = 0;
    std::map<std::string, WorkerSession*> waiting;  // workers that have more to say, by the session asked
  };

  absl::Status Ask(int64_t id, Stream& stream);
  void Cancel(int64_t id, const Stream& stream);
  // Goes on with the next attempt or ends. Returns true when it has ended.
  bool Advance(int64_t id, Stream& stream);

  JobTable* const table_;
  WorkerRegistry* const registry_;
  std::map<int64_t, Stream> streams_;  // by request number
  int64_t next_request_ = 1;
};

}  // namespace muster
