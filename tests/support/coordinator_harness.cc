#include "tests/support/coordinator_harness.h"

#include <gtest/gtest.h>

#include "common/rpc/grpc_status.h"

namespace muster {
namespace {

void ExpectTaken(absl::StatusOr<v1::Job> job) { EXPECT_TRUE(job.ok()) << job.status(); }

RankKey KeyOf(const v1::Assignment& a) { return {a.job_id(), a.attempt(), a.rank()}; }

}  // namespace

v1::JobSpec MakeSpec(const std::string& name, int64_t ranks) {
  v1::JobSpec spec;
  spec.set_name(name);
  spec.mutable_resources()->set_ranks(ranks);
  spec.mutable_resources()->set_device("cpu");
  spec.mutable_resources()->set_memory_per_rank_bytes(1000);
  spec.mutable_training()->set_steps(100);
  spec.mutable_checkpoint()->set_keep(2);
  spec.mutable_policy()->set_max_restarts(5);
  spec.mutable_policy()->set_max_rewinds(3);
  return spec;
}

v1::Plan FakeAdmission::PlanOf(const v1::JobSpec& spec, const std::vector<SchedulableWorker>&) const {
  v1::Plan plan;
  plan.set_feasible(true);
  v1::PlanStage* stage = plan.add_stages();
  stage->set_last_unit(4);
  for (int64_t rank = 0; rank < spec.resources().ranks(); ++rank) {
    plan.add_ranks()->set_rank(rank);
    plan.mutable_ranks()->rbegin()->set_total_bytes(spec.resources().memory_per_rank_bytes());
  }
  return plan;
}

absl::StatusOr<AdmittedJob> FakeAdmission::Admit(const v1::JobSpec& spec, const std::string&,
                                                 const std::vector<SchedulableWorker>& workers) const {
  if (spec.name().empty()) {
    google::rpc::BadRequest::FieldViolation violation;
    violation.set_field("spec.name");
    violation.set_description("is missing");
    return BadRequestError({violation});
  }
  return AdmittedJob{spec, PlanOf(spec, workers)};
}

FakeAgent::FakeAgent(std::string worker_name, std::string id, int64_t slots)
    : name(std::move(worker_name)), agent_id(std::move(id)) {
  inventory.set_hostname(name);
  inventory.set_address("127.0.0.1");
  for (int64_t slot = 0; slot < slots; ++slot) {
    v1::Device* device = inventory.add_devices();
    device->set_index(slot);
    device->set_kind("cpu");
    device->set_memory_bytes(2000);
  }
}

void FakeAgent::Send(v1::CoordinatorMessage message) {
  received.push_back(message);
  if (message.has_welcome()) welcome = message.welcome();
  for (const v1::ObservedRank& rank : message.exits_acknowledged().ranks()) {
    ranks.erase({rank.job_id(), rank.attempt(), rank.rank()});
  }
  if (!message.has_desired()) return;
  desired = message.desired();
  if (!obeys) return;
  std::map<RankKey, v1::AssignmentAction> wanted;
  for (const v1::Assignment& assignment : desired.assignments()) {
    wanted[KeyOf(assignment)] = assignment.action();
    if (assignment.action() != v1::RUN || ranks.count(KeyOf(assignment)) != 0) continue;
    v1::ObservedRank& rank = ranks[KeyOf(assignment)];
    rank.set_job_id(assignment.job_id());
    rank.set_attempt(assignment.attempt());
    rank.set_rank(assignment.rank());
    rank.set_device(assignment.device());
    rank.set_phase(v1::RANK_STARTING);
    rank.set_pid(1000 + assignment.rank());
    ++starts[KeyOf(assignment)];
  }
  for (auto& entry : ranks) {
    if (entry.second.phase() == v1::RANK_EXITED) continue;
    const auto action = wanted.find(entry.first);
    if (action != wanted.end() && action->second == v1::RUN) continue;
    const bool stop = action != wanted.end() && action->second == v1::STOP;
    entry.second.set_phase(v1::RANK_EXITED);
    entry.second.mutable_exit()->set_kind(stop ? v1::EXIT_STOPPED : v1::EXIT_KILLED);
  }
}

v1::Hello FakeAgent::MakeHello() const {
  v1::Hello hello;
  hello.set_worker(name);
  hello.set_agent_id(agent_id);
  *hello.mutable_inventory() = inventory;
  for (const auto& rank : ranks) *hello.add_ranks() = rank.second;
  return hello;
}

v1::Heartbeat FakeAgent::MakeHeartbeat() const {
  v1::Heartbeat heartbeat;
  heartbeat.set_generation(desired.generation());
  for (const auto& rank : ranks) *heartbeat.add_ranks() = rank.second;
  return heartbeat;
}

void FakeAgent::SetPhase(v1::RankPhase phase) {
  for (auto& rank : ranks) {
    if (rank.second.phase() != v1::RANK_EXITED) rank.second.set_phase(phase);
  }
}

void FakeAgent::End(int64_t rank, v1::ExitKind kind, int signal, const std::string& message) {
  v1::ObservedRank* found = Find(rank);
  ASSERT_NE(found, nullptr) << name << " has no rank " << rank;
  found->set_phase(v1::RANK_EXITED);
  found->mutable_exit()->set_kind(kind);
  found->mutable_exit()->set_signal(signal);
  found->mutable_exit()->set_message(message);
}

v1::ObservedRank* FakeAgent::Find(int64_t rank) {
  for (auto entry = ranks.rbegin(); entry != ranks.rend(); ++entry) {
    if (entry->second.rank() == rank) return &entry->second;
  }
  return nullptr;
}

bool FakeAgent::Wants(int64_t rank, v1::AssignmentAction action) const {
  for (const v1::Assignment& assignment : desired.assignments()) {
    if (assignment.rank() == rank && assignment.action() == action) return true;
  }
  return false;
}

CoordinatorHarness::CoordinatorHarness(LeaseOptions leases, GangOptions gang) : leases_(leases), gang_(gang) {
  Build({});
}

void CoordinatorHarness::Build(MemoryStore::Records records) {
  changes.reset();
  manager.reset();
  store = std::make_unique<MemoryStore>(std::move(records));
  JobTableHooks hooks;
  hooks.on_store_failure = [this](absl::Status failure) { store_failure = failure; };
  table = std::make_unique<JobTable>(&clock, store.get(), std::move(hooks));
  registry = std::make_unique<WorkerRegistry>(&clock, store.get(), "cluster", leases_);
  rendezvous = std::make_unique<Rendezvous>(&clock);
  supervisor = std::make_unique<GangSupervisor>(&clock, table.get(), registry.get(), rendezvous.get(), gang_);
  registry->SetListener(supervisor.get());
  manager = std::make_unique<JobManager>(table.get(), registry.get(), supervisor.get(), &admission_);
  changes =
      std::make_unique<JobChanges>(&clock, table.get(), registry.get(), supervisor.get(), manager.get(), &admission_);
  ASSERT_TRUE(table->Load(++starts_).ok());
  ASSERT_TRUE(registry->Load().ok());
  supervisor->AdoptRunning();
}

void CoordinatorHarness::Restart() {
  for (auto& agent : agents) agent.second->connected = false;
  Build(store->records());
}

FakeAgent& CoordinatorHarness::AddAgent(const std::string& name, int64_t slots, const std::string& agent_id) {
  auto agent = std::make_unique<FakeAgent>(name, agent_id, slots);
  FakeAgent& added = *agent;
  agents[name + "/" + agent_id] = std::move(agent);
  EXPECT_TRUE(Connect(added).ok());
  Settle();
  return added;
}

absl::Status CoordinatorHarness::Connect(FakeAgent& agent) {
  absl::Status connected = registry->Connect(&agent, agent.MakeHello());
  agent.connected = connected.ok();
  return connected;
}

void CoordinatorHarness::Disconnect(FakeAgent& agent) {
  agent.connected = false;
  registry->Disconnect(&agent);
}

void CoordinatorHarness::Turn() {
  store->CommitPending();
  registry->Tick();
  rendezvous->Tick();
  supervisor->Tick();
  changes->Tick();
  table->FlushProgress();
}

void CoordinatorHarness::Settle() {
  // Enough for the longest chain: an end, its commit, the kill order, its commit, the last ends, the next attempt.
  for (int round = 0; round < 6; ++round) {
    Turn();
    for (auto& agent : agents) {
      if (agent.second->connected) registry->Heartbeat(agent.second.get(), agent.second->MakeHeartbeat());
    }
  }
  store->CommitPending();
}

void CoordinatorHarness::Pass(absl::Duration duration) {
  for (absl::Duration passed; passed < duration; passed += absl::Seconds(1)) {
    clock.Advance(absl::Seconds(1));
    Settle();
  }
}

std::string CoordinatorHarness::Submit(const v1::JobSpec& spec) {
  v1::SubmitJobRequest request;
  *request.mutable_spec() = spec;
  std::string id;
  manager->Submit(request, [&id](absl::StatusOr<v1::Job> job) {
    ASSERT_TRUE(job.ok()) << job.status();
    id = job->id();
  });
  Settle();
  return id;
}

void CoordinatorHarness::Cancel(const std::string& id) {
  v1::CancelJobRequest request;
  request.set_job(id);
  manager->Cancel(request, ExpectTaken);
}

void CoordinatorHarness::Pause(const std::string& id) {
  v1::PauseJobRequest request;
  request.set_job(id);
  manager->Pause(request, ExpectTaken);
}

void CoordinatorHarness::Resume(const std::string& id) {
  v1::ResumeJobRequest request;
  request.set_job(id);
  manager->Resume(request, ExpectTaken);
}

void CoordinatorHarness::Train() {
  for (auto& agent : agents) agent.second->SetPhase(v1::RANK_TRAINING);
  Settle();
}

void CoordinatorHarness::Report(FakeAgent& agent, v1::RankReport report) {
  report.set_sequence(next_sequence_++);
  supervisor->OnReport(agent.name, report);
}

void CoordinatorHarness::ReportStep(const std::string& job, int64_t step) {
  for (auto& agent : agents) {
    for (const auto& rank : agent.second->ranks) {
      if (rank.second.job_id() != job || rank.second.phase() == v1::RANK_EXITED) continue;
      v1::RankReport report;
      report.set_job_id(job);
      report.set_attempt(rank.second.attempt());
      report.set_rank(rank.second.rank());
      report.mutable_step()->set_step(step);
      report.mutable_step()->set_loss(5.0 - 0.01 * static_cast<double>(step));
      report.mutable_step()->set_tokens(64);
      report.mutable_step()->set_seconds(0.1);
      report.mutable_step()->set_leader(rank.second.rank() == 0);
      Report(*agent.second, report);
    }
  }
  store->CommitPending();
}

void CoordinatorHarness::ReportCheckpoint(const std::string& job, int64_t step) {
  for (auto& agent : agents) {
    for (const auto& rank : agent.second->ranks) {
      if (rank.second.job_id() != job || rank.second.phase() == v1::RANK_EXITED) continue;
      v1::RankReport report;
      report.set_job_id(job);
      report.set_attempt(rank.second.attempt());
      report.set_rank(rank.second.rank());
      report.mutable_checkpoint()->set_step(step);
      report.mutable_checkpoint()->set_path(job + "/attempt-" + std::to_string(rank.second.attempt()) + "/step-" +
                                            std::to_string(step));
      report.mutable_checkpoint()->set_bytes(10);
      report.mutable_checkpoint()->set_consumed_samples(8 * step);
      Report(*agent.second, report);
    }
  }
  store->CommitPending();
}

std::vector<v1::Event> CoordinatorHarness::Events(const std::string& job, const std::string& type) {
  v1::ListEventsRequest request;
  request.set_job(job);
  request.add_types(type);
  const absl::StatusOr<v1::ListEventsResponse> response = manager->ListEvents(request);
  EXPECT_TRUE(response.ok()) << response.status();
  return {response->events().begin(), response->events().end()};
}

std::vector<std::string> CoordinatorHarness::EventTypes(const std::string& job) {
  v1::ListEventsRequest request;
  request.set_job(job);
  std::vector<std::string> types;
  const absl::StatusOr<v1::ListEventsResponse> response = manager->ListEvents(request);
  EXPECT_TRUE(response.ok()) << response.status();
  for (const v1::Event& event : response->events()) types.push_back(event.type());
  return types;
}

}  // namespace muster
