#include "worker/agent/agent.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/rpc/address.h"
#include "common/rpc/proto_time.h"
#include "worker/agent/earlier_ranks.h"
#include "worker/agent/inventory.h"
#include "worker/agent/process_stats.h"

namespace muster {
namespace {

constexpr absl::Duration kTick = absl::Seconds(1);
constexpr absl::Duration kHealthyTick = absl::Seconds(10);
// Between looks at locks of earlier ranks, and how often until their holders are killed: the kernel needs milliseconds.
constexpr absl::Duration kEarlierRanksInterval = absl::Milliseconds(50);
constexpr int kEarlierRanksTries = 20;
// How long an agent that ends waits for the coordinator to acknowledge its ranks' ends.
constexpr absl::Duration kGoodbye = absl::Seconds(2);

std::string SocketPath(const AgentOptions& options) { return options.state_dir + "/agent.sock"; }
std::string LeasePath(const AgentOptions& options) { return options.state_dir + "/lease"; }

}  // namespace

absl::StatusOr<std::unique_ptr<Agent>> Agent::Create(const AgentOptions& options, const std::string& version,
                                                     EventLoop* loop, const Clock* clock) {
  MUSTER_RETURN_IF_ERROR(MakeDirectories(options.state_dir));
  absl::StatusOr<FileLock> lock = FileLock::Acquire(options.state_dir + "/agent.lock");
  if (!lock.ok()) {
    return absl::Status(lock.status().code(), absl::StrCat("--state-dir: another muster-worker uses ",
                                                           options.state_dir, " (", lock.status().message(), ")"));
  }
  MUSTER_ASSIGN_OR_RETURN(LeaseStamp stamp, LeaseStamp::Create(LeasePath(options)));
  std::unique_ptr<Agent> agent(new Agent(options, version, loop, clock, *std::move(lock), std::move(stamp)));
  MUSTER_RETURN_IF_ERROR(agent->Listen());
  return agent;
}

Agent::Agent(const AgentOptions& options, const std::string& version, EventLoop* loop, const Clock* clock,
             FileLock lock, LeaseStamp stamp)
    : options_(options),
      version_(version),
      id_(absl::StrCat(absl::ToUnixNanos(clock->Now()), "-", getpid())),
      loop_(loop),
      clock_(clock),
      lock_(std::move(lock)),
      stamp_(std::move(stamp)),
      watcher_(loop),
      spool_({options.state_dir + "/logs", options.log_bytes_per_rank, options.log_bytes_total}),
      exporter_(loop, clock, options.metrics_retention, version),
      janitor_(options.checkpoint_root),
      fence_(loop, clock, &stamp_,
             [this](absl::Duration silence) {
               supervisor_.KillAll(absl::StrCat("no contact with the coordinator for ", absl::FormatDuration(silence)));
             }),
      supervisor_(loop, clock, &watcher_, &spool_, CommandOptions(), MakeSupervisorEvents()),
      channel_(MakeChannel(options.coordinator.ToString())),
      stub_(v1::WorkerService::NewStub(channel_)),
      session_(loop, clock, stub_.get(), SessionOptions{}, MakeSessionEvents()),
      log_requests_(&spool_, options.name, [this](v1::LogReply reply) {
        v1::WorkerMessage message;
        *message.mutable_log_reply() = std::move(reply);
        session_.Send(std::move(message));
      }) {}

Agent::~Agent() = default;

absl::Status Agent::Listen() {
  MUSTER_ASSIGN_OR_RETURN(rank_service_,
                          RankServiceServer::Start(loop_, SocketPath(options_),
                                                   [this](const v1::RankReport& report) { OnReport(report); }));
  HttpPages pages;
  pages.metrics = [this] { return exporter_.Text(); };
  pages.health = [this]() -> absl::Status {
    const int64_t behind = absl::ToInt64Seconds(clock_->SinceBoot()) - newest_tick_seconds_.load();
    if (absl::Seconds(behind) <= kHealthyTick) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("the agent's loop has stood still for ", behind, " s"));
  };
  MUSTER_ASSIGN_OR_RETURN(http_, HttpServer::Start(options_.http, "--http", std::move(pages)));
  inventory_ = MakeInventory(options_, version_, http_->address());
  return absl::OkStatus();
}

RankCommandOptions Agent::CommandOptions() const {
  RankCommandOptions command;
  command.program = options_.rank_program;
  command.state_dir = options_.state_dir;
  command.agent_address = "unix:" + SocketPath(options_);
  command.coordinator = options_.coordinator.ToString();
  command.data_root = options_.data_root;
  command.checkpoint_root = options_.checkpoint_root;
  command.lease_file = LeasePath(options_);
  command.address = options_.address;
  command.device_memory_bytes = options_.slot_memory_bytes;
  return command;
}

SupervisorEvents Agent::MakeSupervisorEvents() {
  SupervisorEvents events;
  events.on_change = [this] { OnChange(); };
  events.on_ended = [this](const RankKey& rank, const std::string& directory) {
    const absl::Status kept = KeepReports(directory, backlog_.Of(rank));
    if (!kept.ok()) spdlog::warn("what {} said is in memory only: {}", rank.ToString(), std::string(kept.message()));
  };
  events.on_forgotten = [this](const RankKey& rank) {
    backlog_.Forget(rank);
    rank_service_->commands().Forget(rank);
    logged_.erase(rank);
  };
  return events;
}

SessionEvents Agent::MakeSessionEvents() {
  SessionEvents events;
  events.make_hello = [this] { return MakeHello(); };
  events.on_welcome = [this](const v1::Welcome& welcome, absl::Duration sent) { OnWelcome(welcome, sent); };
  events.on_message = [this](const v1::CoordinatorMessage& message) { OnMessage(message); };
  events.on_lost = [this](const absl::Status& status) { OnLost(status); };
  return events;
}

void Agent::Run() {
  loop_->Post([this] {
    AdoptEarlierRanks(0);
    Tick();
  });
  loop_->Run();
}

void Agent::AdoptEarlierRanks(int tries) {
  absl::StatusOr<EarlierRanks> earlier = FindEarlierRanks(options_.state_dir);
  if (!earlier.ok()) {
    spdlog::error("cannot read what an earlier agent left: {}", std::string(earlier.status().message()));
    return session_.Start();
  }
  if (!earlier->living.empty()) {  // no session before all of them are known to be dead
    if (tries >= kEarlierRanksTries) {
      for (const std::string& lock_file : earlier->living) KillLockHolder(lock_file);
    }
    loop_->After(kEarlierRanksInterval, [this, tries] { AdoptEarlierRanks(tries + 1); });
    return;
  }
  for (const v1::ObservedRank& ended : earlier->ended) supervisor_.AdoptEnded(ended);
  for (const v1::RankReport& report : earlier->reports) backlog_.Add(report, false);
  session_.Start();
}

v1::Hello Agent::MakeHello() {
  v1::Hello hello;
  hello.set_worker(options_.name);
  hello.set_agent_id(id_);
  *hello.mutable_inventory() = inventory_;
  for (v1::ObservedRank& rank : supervisor_.Observe()) {
    // What it said is sent before its end, which comes with the first heartbeat: by an end the coordinator decides what
    // the next attempt resumes from.
    if (rank.phase() == v1::RANK_EXITED && !backlog_.Of(RankKey::Of(rank)).empty()) {
      rank.set_phase(v1::RANK_JOINING);
      rank.clear_exit();
    }
    *hello.add_ranks() = std::move(rank);
  }
  return hello;
}

void Agent::OnWelcome(const v1::Welcome& welcome, absl::Duration hello_sent) {
  spdlog::info("connected to the coordinator at {}", options_.coordinator.ToString());
  told_lost_ = false;
  heartbeat_sequence_ = 0;
  if (welcome.has_heartbeat_interval()) heartbeat_interval_ = FromProto(welcome.heartbeat_interval());
  fence_.OnWelcome(hello_sent, FromProto(welcome.fence_after()));
  supervisor_.BeginSession();
  for (v1::RankReport& report : backlog_.TakeForNewSession()) {
    v1::WorkerMessage message;
    *message.mutable_report() = std::move(report);
    session_.Send(std::move(message));
  }
  SendHeartbeat();
}

void Agent::OnMessage(const v1::CoordinatorMessage& message) {
  switch (message.message_case()) {
    case v1::CoordinatorMessage::kDesired:
      return OnDesired(message.desired());
    case v1::CoordinatorMessage::kLogRequest:
      return log_requests_.Handle(message.log_request());
    case v1::CoordinatorMessage::kExitsAcknowledged:
      supervisor_.Acknowledge(message.exits_acknowledged());
      return EndWhenIdle();
    case v1::CoordinatorMessage::kHeartbeatAcknowledged:
      return fence_.OnHeartbeatAcknowledged(message.heartbeat_acknowledged().sequence());
    default:
      return;
  }
}

void Agent::OnLost(const absl::Status& status) {
  log_requests_.CancelAll();
  if (heartbeat_timer_ != 0) loop_->CancelTimer(std::exchange(heartbeat_timer_, 0));
  if (!std::exchange(told_lost_, true)) {
    spdlog::warn("no session with the coordinator at {}: {}; trying again until there is one",
                 options_.coordinator.ToString(), std::string(status.message()));
  }
}

void Agent::OnDesired(const v1::Desired& desired) {
  for (const v1::Assignment& assignment : desired.assignments()) {
    for (const std::string& path : assignment.delete_checkpoints()) janitor_.Delete(path);
    rank_service_->commands().Set(RankKey::Of(assignment), assignment.commands());
  }
  supervisor_.SetDesired(desired);
}

void Agent::OnReport(const v1::RankReport& report) {
  const RankKey rank = RankKey::Of(report);
  const v1::Assignment* assignment = supervisor_.FindAssignment(rank);
  if (assignment == nullptr || !supervisor_.OnReport(report)) return;
  if (report.report_case() == v1::RankReport::REPORT_NOT_SET) return;  // it only says that it is joining
  exporter_.OnReport(*assignment, report);
  // A timeline is for somebody who waits for it now.
  if (!report.has_trace()) backlog_.Add(report, session_.connected());
  v1::WorkerMessage message;
  *message.mutable_report() = report;
  session_.Send(std::move(message));
}

void Agent::OnChange() {
  if (std::exchange(change_posted_, true)) return;
  loop_->Post([this] {  // several changes of one moment go in one message
    change_posted_ = false;
    LogChanges(supervisor_.Observe());
    SendHeartbeat();
    EndWhenIdle();
  });
}

void Agent::LogChanges(const std::vector<v1::ObservedRank>& ranks) {
  for (const v1::ObservedRank& rank : ranks) {
    const RankKey key = RankKey::Of(rank);
    const auto told = logged_.find(key);
    if (told != logged_.end() && told->second == rank.phase()) continue;
    const bool is_new = told == logged_.end();
    logged_[key] = rank.phase();
    if (rank.phase() == v1::RANK_EXITED) {
      exporter_.OnRankEnded(key);
      spdlog::info("{} ended: {}", key.ToString(), rank.exit().message());
    } else if (is_new) {
      const v1::Assignment* assignment = supervisor_.FindAssignment(key);
      exporter_.OnRankStarted(*assignment, RankMemoryBytes(CommandOptions(), *assignment));
      spdlog::info("{} started on device {} as process {}", key.ToString(), rank.device(), rank.pid());
    }
  }
}

void Agent::SendHeartbeat() {
  if (!session_.connected()) return;
  v1::WorkerMessage message;
  v1::Heartbeat& heartbeat = *message.mutable_heartbeat();
  heartbeat.set_sequence(++heartbeat_sequence_);
  heartbeat.set_generation(supervisor_.generation());
  *heartbeat.mutable_sent_at() = ToProto(clock_->Now());
  for (v1::ObservedRank& rank : supervisor_.Observe()) *heartbeat.add_ranks() = std::move(rank);
  if (shutdowns_ > 0) *heartbeat.mutable_devices() = inventory_.devices();
  fence_.OnHeartbeatSent(heartbeat_sequence_);
  session_.Send(std::move(message));
  if (heartbeat_timer_ != 0) loop_->CancelTimer(heartbeat_timer_);
  heartbeat_timer_ = loop_->After(heartbeat_interval_, [this] {
    heartbeat_timer_ = 0;
    SendHeartbeat();
  });
}

void Agent::Tick() {
  newest_tick_seconds_.store(absl::ToInt64Seconds(clock_->SinceBoot()));
  int64_t busy = 0;
  for (const v1::ObservedRank& rank : supervisor_.Observe()) {
    if (rank.phase() == v1::RANK_EXITED) continue;
    ++busy;
    exporter_.OnResident(RankKey::Of(rank), ResidentBytes(rank.pid()));
  }
  const int64_t unhealthy = shutdowns_ > 0 ? options_.slots - busy : 0;
  exporter_.OnDevices(options_.slots - busy - unhealthy, busy, unhealthy);
  EndWhenIdle();
  loop_->After(kTick, [this] { Tick(); });
}

void Agent::Shutdown(int count) {
  loop_->Post([this, count] {
    shutdowns_ = count;
    if (count > 1) {
      supervisor_.KillAll("its worker was told to end at once");
      return loop_->Stop();
    }
    spdlog::info("ending: {} ranks are asked to write their checkpoints", supervisor_.living());
    for (v1::Device& device : *inventory_.mutable_devices()) device.set_unhealthy_reason("its worker is ending");
    supervisor_.StopAll(options_.shutdown_grace);
    SendHeartbeat();
    EndWhenIdle();
  });
}

void Agent::EndWhenIdle() {
  if (shutdowns_ == 0 || supervisor_.living() > 0) return;
  const absl::Duration now = clock_->SinceBoot();
  if (end_by_ == absl::InfiniteDuration()) {
    end_by_ = now + kGoodbye;
    loop_->After(kGoodbye, [this] { EndWhenIdle(); });
  }
  if (supervisor_.all_acknowledged() || !session_.connected() || now >= end_by_) loop_->Stop();
}

}  // namespace muster
