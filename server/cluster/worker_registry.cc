#include "server/cluster/worker_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr char kPrefix[] = "worker/";

RankKey KeyOf(const v1::ObservedRank& rank) { return {rank.job_id(), rank.attempt(), rank.rank()}; }
RankKey KeyOf(const v1::Assignment& assignment) {
  return {assignment.job_id(), assignment.attempt(), assignment.rank()};
}

bool IsValidName(const std::string& name) {
  return !name.empty() && name.size() <= 63 && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

absl::Status InvalidName(const std::string& name) {
  google::rpc::BadRequest::FieldViolation violation;
  violation.set_field("hello.worker");
  violation.set_description(
      absl::StrCat("\"", name, "\" is not a worker's name: up to 63 letters, digits, '-', '_' and '.'"));
  return BadRequestError({violation});
}

}  // namespace

absl::Status WorkerRegistry::Load() {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Record> records, store_->Scan(kPrefix));
  for (const Record& record : records) {
    Worker& worker = workers_[record.key.substr(sizeof(kPrefix) - 1)];
    if (!worker.record.ParseFromString(record.value)) {
      return absl::DataLossError(absl::StrCat("the record ", record.key, " in the state directory cannot be read"));
    }
    worker.last_contact = clock_->SinceBoot();
  }
  return absl::OkStatus();
}

absl::Status WorkerRegistry::Connect(WorkerSession* session, const v1::Hello& hello) {
  if (!IsValidName(hello.worker())) return InvalidName(hello.worker());
  const auto known = workers_.find(hello.worker());
  if (known != workers_.end() && known->second.session != nullptr) {
    Worker& holder = known->second;
    if (holder.agent_id != hello.agent_id() && !holder.lost) {
      return ErrorWithInfo(absl::StatusCode::kAlreadyExists, "WORKER_NAME_TAKEN",
                           absl::StrCat("another agent is connected as ", hello.worker(), " from ",
                                        holder.record.inventory().hostname(), "; start this one with another --name"),
                           {{"worker", hello.worker()}, {"hostname", holder.record.inventory().hostname()}});
    }
    WorkerSession* old = std::exchange(holder.session, nullptr);
    old->Close(absl::AbortedError("a newer session of this worker took its place"));
  }
  Worker& worker = workers_[hello.worker()];
  worker.session = session;
  worker.agent_id = hello.agent_id();
  worker.lost = false;
  worker.last_contact = clock_->SinceBoot();
  worker.last_heartbeat = clock_->Now();
  worker.generation = 0;
  worker.taken_up = 0;
  *worker.record.mutable_inventory() = hello.inventory();
  if (!worker.record.has_registered_at()) *worker.record.mutable_registered_at() = ToProto(clock_->Now());
  Save(hello.worker(), worker, [](absl::Status) {});

  v1::CoordinatorMessage message;
  v1::Welcome* welcome = message.mutable_welcome();
  welcome->set_cluster_id(cluster_id_);
  *welcome->mutable_heartbeat_interval() = ToProto(leases_.heartbeat_interval);
  *welcome->mutable_lease() = ToProto(leases_.lease);
  *welcome->mutable_fence_after() = ToProto(leases_.fence_after);
  session->Send(std::move(message));
  SendDesired(worker);
  TakeList(worker, hello.ranks());
  listener_->OnWorkerChanged(hello.worker());
  return absl::OkStatus();
}

void WorkerRegistry::Heartbeat(WorkerSession* session, const v1::Heartbeat& heartbeat) {
  const std::string name = NameOf(session);
  if (name.empty()) return;
  Worker& worker = workers_[name];
  worker.last_contact = clock_->SinceBoot();
  worker.last_heartbeat = clock_->Now();
  worker.lost = false;
  worker.taken_up = heartbeat.generation();
  for (const v1::Device& device : heartbeat.devices()) {
    for (v1::Device& known : *worker.record.mutable_inventory()->mutable_devices()) {
      if (known.index() == device.index()) known = device;
    }
  }
  TakeList(worker, heartbeat.ranks());
  v1::CoordinatorMessage answer;
  answer.mutable_heartbeat_acknowledged()->set_sequence(heartbeat.sequence());
  session->Send(std::move(answer));
  listener_->OnWorkerChanged(name);
}

void WorkerRegistry::Disconnect(WorkerSession* session) {
  const std::string name = NameOf(session);
  if (name.empty()) return;
  // Its ranks may well live: the lease decides.
  workers_[name].session = nullptr;
  listener_->OnWorkerChanged(name);
}

std::string WorkerRegistry::NameOf(WorkerSession* session) const {
  for (const auto& entry : workers_) {
    if (entry.second.session == session) return entry.first;
  }
  return "";
}

void WorkerRegistry::TakeList(Worker& worker, const google::protobuf::RepeatedPtrField<v1::ObservedRank>& ranks) {
  worker.observed.clear();
  for (const v1::ObservedRank& rank : ranks) worker.observed[KeyOf(rank)] = rank;
}

void WorkerRegistry::SetDesired(const std::string& job_id,
                                std::map<std::string, std::vector<v1::Assignment>> by_worker) {
  for (auto& entry : workers_) {
    Worker& worker = entry.second;
    std::map<RankKey, v1::Assignment> wanted;
    for (v1::Assignment& assignment : by_worker[entry.first]) wanted[KeyOf(assignment)] = std::move(assignment);
    bool changed = false;
    for (auto kept = worker.desired.begin(); kept != worker.desired.end();) {
      const bool drop = std::get<0>(kept->first) == job_id && wanted.count(kept->first) == 0;
      changed = changed || drop;
      kept = drop ? worker.desired.erase(kept) : std::next(kept);
    }
    for (auto& assignment : wanted) {
      v1::Assignment& place = worker.desired[assignment.first];
      if (place.SerializeAsString() == assignment.second.SerializeAsString()) continue;
      place = std::move(assignment.second);
      changed = true;
    }
    if (changed) SendDesired(worker);
  }
}

void WorkerRegistry::SendDesired(Worker& worker) {
  ++worker.generation;
  if (worker.session == nullptr) return;  // its next Hello asks for it
  v1::CoordinatorMessage message;
  message.mutable_desired()->set_generation(worker.generation);
  for (const auto& assignment : worker.desired) *message.mutable_desired()->add_assignments() = assignment.second;
  worker.session->Send(std::move(message));
}

void WorkerRegistry::AcknowledgeExit(const std::string& worker, const RankKey& rank) {
  v1::CoordinatorMessage message;
  v1::ObservedRank* ended = message.mutable_exits_acknowledged()->add_ranks();
  ended->set_job_id(std::get<0>(rank));
  ended->set_attempt(std::get<1>(rank));
  ended->set_rank(std::get<2>(rank));
  Send(worker, std::move(message));
}

void WorkerRegistry::Send(const std::string& worker, v1::CoordinatorMessage message) {
  const auto found = workers_.find(worker);
  if (found != workers_.end() && found->second.session != nullptr) found->second.session->Send(std::move(message));
}

void WorkerRegistry::CloseSessions(const absl::Status& status) {
  for (auto& entry : workers_) {
    if (WorkerSession* session = std::exchange(entry.second.session, nullptr); session != nullptr)
      session->Close(status);
  }
}

void WorkerRegistry::Tick() {
  const absl::Duration now = clock_->SinceBoot();
  std::vector<std::string> lost;
  for (auto& entry : workers_) {
    if (entry.second.lost || now - entry.second.last_contact <= leases_.lease) continue;
    entry.second.lost = true;
    lost.push_back(entry.first);
  }
  for (const std::string& name : lost) listener_->OnWorkerChanged(name);
}

void WorkerRegistry::SetCordon(const std::string& name, bool cordoned, const std::string& reason,
                               absl::AnyInvocable<void(absl::StatusOr<v1::Worker>)> reply) {
  const auto found = workers_.find(name);
  if (found == workers_.end()) {
    reply(ErrorWithInfo(absl::StatusCode::kNotFound, "WORKER_NOT_FOUND", absl::StrCat("no worker ", name),
                        {{"worker", name}}));
    return;
  }
  found->second.record.set_cordoned(cordoned);
  found->second.record.set_cordon_reason(cordoned ? reason : "");
  Save(name, found->second, [this, name, reply = std::move(reply)](absl::Status committed) mutable {
    if (!committed.ok()) {
      reply(committed);
      return;
    }
    reply(View(name));
    listener_->OnWorkerChanged(name);
  });
}

void WorkerRegistry::Save(const std::string& name, const Worker& worker, Store::Done done) {
  Batch batch;
  batch.puts.push_back({absl::StrCat(kPrefix, name), worker.record.SerializeAsString()});
  store_->Commit(std::move(batch), std::move(done));
}

const WorkerRegistry::Worker* WorkerRegistry::Find(const std::string& name) const {
  const auto found = workers_.find(name);
  return found == workers_.end() ? nullptr : &found->second;
}

bool WorkerRegistry::IsReachable(const std::string& name) const {
  const Worker* worker = Find(name);
  return worker != nullptr && !worker->lost;
}

absl::Duration WorkerRegistry::SilentFor(const std::string& name) const {
  const Worker* worker = Find(name);
  return worker == nullptr ? absl::InfiniteDuration() : clock_->SinceBoot() - worker->last_contact;
}

bool WorkerRegistry::IsGone(const std::string& name, const RankKey& rank) const {
  const Worker* worker = Find(name);
  if (worker == nullptr || worker->session == nullptr || worker->taken_up < worker->generation) return false;
  const auto desired = worker->desired.find(rank);
  if (desired != worker->desired.end() && desired->second.action() != v1::KILL) return false;
  return worker->observed.count(rank) == 0;
}

v1::Worker WorkerRegistry::View(const std::string& name) const {
  const Worker& worker = workers_.at(name);
  v1::Worker view;
  view.set_name(name);
  view.set_state(worker.lost || worker.agent_id.empty() ? v1::UNREACHABLE
                 : worker.record.cordoned()             ? v1::CORDONED
                                                        : v1::READY);
  *view.mutable_inventory() = worker.record.inventory();
  for (const auto& entry : worker.observed) {
    const v1::ObservedRank& rank = entry.second;
    if (rank.phase() == v1::RANK_EXITED) continue;
    v1::DeviceUse* use = view.add_uses();
    use->set_device(rank.device());
    use->set_job_id(rank.job_id());
    use->set_attempt(rank.attempt());
    use->set_rank(rank.rank());
  }
  if (worker.last_heartbeat != absl::InfinitePast()) {
    *view.mutable_last_heartbeat() = ToProto(worker.last_heartbeat);
  }
  *view.mutable_registered_at() = worker.record.registered_at();
  view.set_cordon_reason(worker.record.cordon_reason());
  return view;
}

}  // namespace muster
