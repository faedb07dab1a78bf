// The workers: their sessions and leases, what they are desired to run and what they say that they run.
//
// Owned by the coordinator; all calls on its loop. A worker is known from its first Hello for ever: its inventory and
// cordon are stored, the rest is soft state that its agent says again when it reconnects. After a start of the
// coordinator every known worker has one lease to come back before it counts as unreachable.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/worker.pb.h"
#include "server/store/records.pb.h"
#include "server/store/store.h"

namespace muster {

// The way down to one agent: the server's side of a Session stream. Owned by the API; valid until Disconnect.
class WorkerSession {
 public:
  virtual ~WorkerSession() = default;
  virtual void Send(v1::CoordinatorMessage message) = 0;
  // Ends the stream with this status. Nothing is sent after it.
  virtual void Close(absl::Status status) = 0;
};

// Told of every change of a worker, after the registry has taken it up: it came, went, listed its ranks, lost its
// lease, was cordoned.
class WorkerListener {
 public:
  virtual ~WorkerListener() = default;
  virtual void OnWorkerChanged(const std::string& worker) = 0;
};

using RankKey = std::tuple<std::string, int64_t, int64_t>;  // job id, attempt, rank

struct LeaseOptions {
  // How often an agent reports. Shorter: exits without an own message are seen sooner; costs some hundred bytes a beat.
  absl::Duration heartbeat_interval = absl::Seconds(1);
  // Silence after which a worker counts as unreachable. At least three heartbeats, or one lost packet looks like a dead
  // host.
  absl::Duration lease = absl::Seconds(10);
  // Silence after which an agent kills its own ranks, and the coordinator may start them elsewhere. Longer than any
  // outage of the coordinator that training should survive.
  absl::Duration fence_after = absl::Minutes(5);
};

class WorkerRegistry {
 public:
  struct Worker {
    server::WorkerRecord record;
    std::string agent_id;
    WorkerSession* session = nullptr;  // null: no stream now
    bool lost = false;                 // the lease has expired
    absl::Duration last_contact;       // since boot
    absl::Time last_heartbeat = absl::InfinitePast();
    std::map<RankKey, v1::ObservedRank> observed;  // as its agent listed them last, ended ones included
    std::map<RankKey, v1::Assignment> desired;
    int64_t generation = 0;  // of `desired`, in this session
    int64_t taken_up = 0;    // the newest generation that the agent has said to follow
  };

  WorkerRegistry(const Clock* clock, Store* store, std::string cluster_id, LeaseOptions leases)
      : clock_(clock), store_(store), cluster_id_(std::move(cluster_id)), leases_(leases) {}

  // REQUIRES: before any other call.
  void SetListener(WorkerListener* listener) { listener_ = listener; }
  absl::Status Load();

  // ---- from agents ----

  // Answers with Welcome and Desired. ALREADY_EXISTS with reason WORKER_NAME_TAKEN when another agent of that name has
  // its stream open and holds its lease; an agent whose stream has ended, or that is silent, gives way.
  absl::Status Connect(WorkerSession* session, const v1::Hello& hello);
  void Heartbeat(WorkerSession* session, const v1::Heartbeat& heartbeat);
  void Disconnect(WorkerSession* session);
  // Name of the worker whose session this is now; empty when another took its place.
  std::string NameOf(WorkerSession* session) const;

  // ---- from the coordinator ----

  // What this job wants of each worker, in place of all it wanted before. Workers whose share changed are told at once.
  void SetDesired(const std::string& job_id, std::map<std::string, std::vector<v1::Assignment>> by_worker);
  // The agent may forget this end. REQUIRES: the end is committed and the rank is not desired to run.
  void AcknowledgeExit(const std::string& worker, const RankKey& rank);
  void Send(const std::string& worker, v1::CoordinatorMessage message);
  // Ends every session with this status: the coordinator ends.
  void CloseSessions(const absl::Status& status);

  // Expires leases. Called every few milliseconds.
  void Tick();

  // Replies when committed. NOT_FOUND for an unknown worker.
  void SetCordon(const std::string& worker, bool cordoned, const std::string& reason,
                 absl::AnyInvocable<void(absl::StatusOr<v1::Worker>)> reply);

  // ---- questions ----

  const std::map<std::string, Worker>& workers() const { return workers_; }
  const Worker* Find(const std::string& name) const;
  bool IsReachable(const std::string& name) const;
  // Time since the worker was heard; infinite for one that is not known.
  absl::Duration SilentFor(const std::string& name) const;
  // Whether this rank certainly does not run: its agent follows a Desired that does not let it run, and lists it no
  // more.
  bool IsGone(const std::string& name, const RankKey& rank) const;
  v1::Worker View(const std::string& name) const;
  const LeaseOptions& leases() const { return leases_; }

 private:
  void SendDesired(Worker& worker);
  void TakeList(Worker& worker, const google::protobuf::RepeatedPtrField<v1::ObservedRank>& ranks);
  void Save(const std::string& name, const Worker& worker, Store::Done done);

  const Clock* const clock_;
  Store* const store_;
  const std::string cluster_id_;
  const LeaseOptions leases_;
  WorkerListener* listener_ = nullptr;

  std::map<std::string, Worker> workers_;  // by name
};

}  // namespace muster
