// The coordinator without gRPC, threads or disk, and agents that obey it: for tests of what it decides.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/cluster/rendezvous.h"
#include "server/cluster/worker_registry.h"
#include "server/job/admission.h"
#include "server/job/gang_supervisor.h"
#include "server/job/job_changes.h"
#include "server/job/job_manager.h"
#include "server/job/job_table.h"
#include "server/job/log_relay.h"
#include "server/store/memory_store.h"
#include "tests/support/fake_clock.h"

namespace muster {

// Admits everything but a spec without a name; a rank takes as many bytes as the spec's memory_per_rank_bytes.
class FakeAdmission : public Admission {
 public:
  absl::StatusOr<AdmittedJob> Admit(const v1::JobSpec& spec, const std::string& job_id,
                                    const std::vector<SchedulableWorker>& workers) const override;
  v1::Plan PlanOf(const v1::JobSpec& spec, const std::vector<SchedulableWorker>& workers) const override;
};

// A spec that FakeAdmission admits.
v1::JobSpec MakeSpec(const std::string& name, int64_t ranks);

// An agent that does what Desired says as soon as it hears it, and tells of it with its next heartbeat.
class FakeAgent : public WorkerSession {
 public:
  FakeAgent(std::string name, std::string agent_id, int64_t slots);

  void Send(v1::CoordinatorMessage message) override;
  void Close(absl::Status status) override { closed = std::move(status); }

  v1::Hello MakeHello() const;
  v1::Heartbeat MakeHeartbeat() const;

  // All ranks that it has are in this phase from now on.
  void SetPhase(v1::RankPhase phase);
  // The rank ends. `signal` 0: by itself.
  void End(int64_t rank, v1::ExitKind kind, int signal = 0, const std::string& message = "");
  v1::ObservedRank* Find(int64_t rank);
  bool Wants(int64_t rank, v1::AssignmentAction action) const;

  const std::string name;
  const std::string agent_id;
  bool obeys = true;  // kills, stops and starts; otherwise it only listens
  bool connected = false;
  absl::Status closed;
  v1::Inventory inventory;
  v1::Welcome welcome;
  v1::Desired desired;
  std::vector<v1::CoordinatorMessage> received;
  std::map<RankKey, v1::ObservedRank> ranks;
  std::map<RankKey, int64_t> starts;  // how often each was started: once, or the agent was misled
};

class CoordinatorHarness {
 public:
  explicit CoordinatorHarness(LeaseOptions leases = {}, GangOptions gang = {});

  // A new agent that is connected.
  FakeAgent& AddAgent(const std::string& name, int64_t slots, const std::string& agent_id = "agent");
  absl::Status Connect(FakeAgent& agent);
  // The stream breaks; the agent and its ranks live.
  void Disconnect(FakeAgent& agent);

  // Commits, beats and ticks until nothing moves.
  void Settle();
  // Commits what waits and ticks once, without heartbeats.
  void Turn();
  // Time passes in steps of a second, with heartbeats of the connected agents.
  void Pass(absl::Duration duration);
  // The coordinator is killed and started on what was committed; every stream breaks.
  void Restart();

  // Submits and settles; the job's id.
  std::string Submit(const v1::JobSpec& spec);
  v1::Job Job(const std::string& id) { return *manager->Get(id); }
  // Ask, expecting to be taken up. What follows is for Settle or Pass.
  void Cancel(const std::string& id);
  void Pause(const std::string& id);
  void Resume(const std::string& id);
  // Every rank of every agent trains.
  void Train();
  void Report(FakeAgent& agent, v1::RankReport report);
  // A step that every rank of the job reports, rank 0 as the leader.
  void ReportStep(const std::string& job, int64_t step);
  void ReportCheckpoint(const std::string& job, int64_t step);
  std::vector<std::string> EventTypes(const std::string& job);
  std::vector<v1::Event> Events(const std::string& job, const std::string& type);

  FakeClock clock;
  std::unique_ptr<MemoryStore> store;
  std::unique_ptr<JobTable> table;
  std::unique_ptr<WorkerRegistry> registry;
  std::unique_ptr<Rendezvous> rendezvous;
  std::unique_ptr<GangSupervisor> supervisor;
  std::unique_ptr<JobManager> manager;
  std::unique_ptr<JobChanges> changes;
  std::map<std::string, std::unique_ptr<FakeAgent>> agents;
  absl::Status store_failure;

 private:
  void Build(MemoryStore::Records records);

  const LeaseOptions leases_;
  const GangOptions gang_;
  const FakeAdmission admission_;
  int64_t starts_ = 0;
  int64_t next_sequence_ = 1;
};

}  // namespace muster
