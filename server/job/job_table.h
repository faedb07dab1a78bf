// The jobs, their events and those who watch them: the one writer of job records and events.
//
// Owned by the coordinator; all calls on its loop. A change is made in memory, with events, and then committed; readers
// see the committed job (with its newest progress, which is soft), and watchers are told by the commit's callback.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "common/base/clock.h"
#include "server/job/job.h"
#include "server/job/job_entry.h"
#include "server/store/store.h"

namespace muster {

// Told of a job's changes. Owned by the caller of Watch, until Unwatch or the last change.
class JobWatcher {
 public:
  virtual ~JobWatcher() = default;
  virtual void OnChange(const v1::WatchJobResponse& change) = 0;
  // OK: the last change led to a final state. Otherwise why no more changes come.
  virtual void OnEnd(absl::Status end) = 0;
};

struct JobTableHooks {
  // A commit failed. The memory is ahead of the store for ever, so the coordinator has to end.
  std::function<void(absl::Status)> on_store_failure;
  // An event was stored: for the log. May be empty.
  std::function<void(const v1::Event&)> on_event;
};

class JobTable {
 public:
  JobTable(const Clock* clock, Store* store, JobTableHooks hooks)
      : clock_(clock), store_(store), hooks_(std::move(hooks)) {}

  // `starts` of the coordinator on this state so far: revisions go on growing though progress is not stored.
  absl::Status Load(int64_t starts);

  // By id, or the newest of that name that has not ended, or else the newest of that name. Null when there is none.
  JobEntry* Find(const std::string& id_or_name);
  // The job of this request id; null when there is none.
  JobEntry* FindRequest(const std::string& request_id);
  // Oldest first, by number.
  const std::map<int64_t, std::unique_ptr<JobEntry>>& jobs() const { return jobs_; }

  // The id that the next job will have.
  std::string NextId() const;

  // A new QUEUED job with the next number. Not committed yet.
  JobEntry* Add(server::JobRecord record);

  // Takes the job through the state machine, with time, cause and event. REQUIRES: the transition is in the table.
  void Transition(JobEntry& entry, JobEvent event, const std::string& code, const std::string& reason);

  // Adds an event to the next commit. `rank` -1: not about one rank.
  void AddEvent(JobEntry& entry, v1::EventSeverity severity, const std::string& type, const std::string& message,
                const std::string& worker = "", int64_t rank = -1);

  // Stores the job and its new events; then shows them and runs `released` with the outcome.
  void Commit(JobEntry& entry, absl::AnyInvocable<void(absl::Status)> released);

  // Runs `released` when all that was committed before is stored.
  void AfterCommits(absl::AnyInvocable<void(absl::Status)> released);

  // Progress changed: watchers are told at the next FlushProgress.
  void Touch(JobEntry& entry);
  void FlushProgress();

  // The job as people see it.
  v1::Job View(const JobEntry& entry) const;
  // For Commit and AfterCommits: replies with the job as people see it then, or with why it could not be stored.
  absl::AnyInvocable<void(absl::Status)> ReplyWithView(JobEntry& entry,
                                                       absl::AnyInvocable<void(absl::StatusOr<v1::Job>)> reply) const;

  // The snapshot comes before this returns. OUT_OF_RANGE with reason RESUME_TOKEN_EXPIRED, INVALID_ARGUMENT for a token
  // that is none. The watcher of a job that has ended gets the snapshot and the end at once.
  absl::Status Watch(JobEntry& entry, const std::string& resume_token, JobWatcher* watcher);
  void Unwatch(JobWatcher* watcher);
  // Ends every watch with this status: the coordinator ends.
  void EndWatches(const absl::Status& status);

 private:
  int64_t NextNumber() const;
  void Release(JobEntry& entry, const v1::Job& job, const std::vector<v1::Event>& events);
  v1::WatchJobResponse MakeChange(const JobEntry& entry) const;

  const Clock* const clock_;
  Store* const store_;
  const JobTableHooks hooks_;

  std::map<int64_t, std::unique_ptr<JobEntry>> jobs_;  // by number
  std::map<std::string, JobEntry*> requests_;          // by request id
  std::multimap<std::string, JobWatcher*> watchers_;   // by job id
  int64_t next_sequence_ = 1;
  bool store_failed_ = false;
};

}  // namespace muster
