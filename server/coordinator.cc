#include "server/coordinator.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/rpc/proto_time.h"
#include "server/api/cluster_service.h"
#include "server/api/job_service.h"
#include "server/api/rendezvous_service.h"
#include "server/api/worker_service.h"
#include "server/job/placement.h"
#include "server/job/spec_admission.h"
#include "server/metrics.h"
#include "server/store/sqlite_store.h"

namespace muster {
namespace {

// Leases and deadlines are looked at this often. Recovery waits for it nowhere: ends of ranks act when they are
// reported.
constexpr absl::Duration kTickInterval = absl::Milliseconds(50);
constexpr absl::Duration kMetricsInterval = absl::Seconds(1);
// For calls under way when musterd stops.
constexpr std::chrono::seconds kShutdownGrace(1);
// A loop that has not turned for this long is stuck, which /healthz then says.
constexpr absl::Duration kStuckAfter = absl::Seconds(10);

constexpr char kClusterKey[] = "cluster";

std::string MakeClusterId() {
  std::random_device random;
  return absl::StrFormat("%08x%08x", random(), random());
}

void LogEvent(const v1::Event& event) {
  const spdlog::level::level_enum level = event.severity() == v1::ERROR     ? spdlog::level::err
                                          : event.severity() == v1::WARNING ? spdlog::level::warn
                                                                            : spdlog::level::info;
  spdlog::log(level, "{} attempt {}: {}", event.job_id(), event.attempt(), event.message());
}

}  // namespace

Coordinator::Coordinator(ServerOptions options, std::string version, const Clock* clock)
    : options_(std::move(options)),
      version_(std::move(version)),
      clock_(clock),
      started_at_(clock->Now()),
      loop_(clock),
      metrics_(std::make_unique<ServerMetrics>(version_)) {}

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Start(ServerOptions options, std::string version,
                                                                const Clock* clock) {
  std::unique_ptr<Coordinator> coordinator(new Coordinator(std::move(options), std::move(version), clock));
  MUSTER_RETURN_IF_ERROR(coordinator->OpenState());
  MUSTER_RETURN_IF_ERROR(coordinator->Listen());
  coordinator->Tick();
  coordinator->thread_ = std::thread([raw = coordinator.get()] { raw->loop_.Run(); });
  return coordinator;
}

absl::Status Coordinator::OpenState() {
  SqliteStoreOptions store;
  store.directory = options_.state_dir;
  store.post = [this](absl::AnyInvocable<void()> task) { loop_.Post(std::move(task)); };
  store.on_commit_seconds = [this](double seconds) { metrics_->OnCommit(seconds); };
  MUSTER_ASSIGN_OR_RETURN(store_, SqliteStore::Open(std::move(store)));
  MUSTER_RETURN_IF_ERROR(LoadCluster());
  JobTableHooks hooks;
  hooks.on_store_failure = [this](absl::Status failure) { End(std::move(failure)); };
  hooks.on_event = LogEvent;
  table_ = std::make_unique<JobTable>(clock_, store_.get(), std::move(hooks));
  MUSTER_RETURN_IF_ERROR(table_->Load(starts_));
  registry_ = std::make_unique<WorkerRegistry>(clock_, store_.get(), cluster_id_, options_.leases);
  MUSTER_RETURN_IF_ERROR(registry_->Load());
  rendezvous_ = std::make_unique<Rendezvous>(clock_);
  supervisor_ =
      std::make_unique<GangSupervisor>(clock_, table_.get(), registry_.get(), rendezvous_.get(), options_.gang);
  registry_->SetListener(supervisor_.get());
  admission_ = std::make_unique<SpecAdmission>();
  manager_ = std::make_unique<JobManager>(table_.get(), registry_.get(), supervisor_.get(), admission_.get());
  changes_ = std::make_unique<JobChanges>(clock_, table_.get(), registry_.get(), supervisor_.get(), manager_.get(),
                                          admission_.get());
  logs_ = std::make_unique<LogRelay>(table_.get(), registry_.get());
  history_ = std::make_unique<MetricStore>(clock_, store_.get(), table_.get(), manager_.get());
  traces_ = std::make_unique<TraceRelay>(clock_, table_.get(), registry_.get(), supervisor_.get(), manager_.get());
  supervisor_->AdoptRunning();
  return absl::OkStatus();
}

absl::Status Coordinator::LoadCluster() {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Record> records, store_->Scan(kClusterKey));
  server::ClusterRecord cluster;
  if (records.empty()) {
    cluster.set_cluster_id(MakeClusterId());
  } else if (!cluster.ParseFromString(records.front().value)) {
    return absl::DataLossError("--state-dir: the cluster's record cannot be read; restore muster.db from a copy");
  }
  cluster.set_starts(cluster.starts() + 1);
  cluster_id_ = cluster.cluster_id();
  starts_ = cluster.starts();
  Batch batch;
  batch.puts.push_back({kClusterKey, cluster.SerializeAsString()});
  store_->Commit(std::move(batch), [this](absl::Status committed) {
    if (!committed.ok()) End(std::move(committed));
  });
  return absl::OkStatus();
}

absl::Status Coordinator::Listen() {
  JobServiceParts jobs;
  jobs.manager = manager_.get();
  jobs.changes = changes_.get();
  jobs.table = table_.get();
  jobs.logs = logs_.get();
  jobs.metrics = history_.get();
  jobs.traces = traces_.get();
  job_service_ = std::make_unique<JobService>(&loop_, jobs);
  cluster_service_ = std::make_unique<ClusterService>(&loop_, registry_.get(), [this] { return Info(); });
  WorkerServiceParts workers;
  workers.registry = registry_.get();
  workers.supervisor = supervisor_.get();
  workers.logs = logs_.get();
  workers.metrics = history_.get();
  workers.traces = traces_.get();
  worker_service_ = std::make_unique<WorkerService>(&loop_, workers);
  rendezvous_service_ = std::make_unique<RendezvousService>(&loop_, rendezvous_.get());
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();

  HttpPages pages;
  pages.metrics = [this] { return metrics_->Text(); };
  pages.health = [this] { return Health(); };
  MUSTER_ASSIGN_OR_RETURN(http_, HttpServer::Start(options_.http, "--http", std::move(pages)));
  int port = 0;
  MUSTER_ASSIGN_OR_RETURN(server_, StartServer(
                                       options_.listen, "--listen",
                                       [this](grpc::ServerBuilder& builder) {
                                         builder.RegisterService(job_service_.get());
                                         builder.RegisterService(cluster_service_.get());
                                         builder.RegisterService(worker_service_.get());
                                         builder.RegisterService(rendezvous_service_.get());
                                       },
                                       &port));
  options_.listen.port = port;
  return absl::OkStatus();
}

Coordinator::~Coordinator() {
  http_.reset();
  if (server_ != nullptr) {
    const absl::Status stopping = absl::UnavailableError("musterd is stopping");
    loop_.Post([this, stopping] {
      table_->EndWatches(stopping);
      changes_->EndAll(stopping);
      logs_->EndAll(stopping);
      traces_->EndAll(stopping);
      registry_->CloseSessions(stopping);
    });
    // The loop turns while this waits: it is what finishes the calls.
    server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    server_->Wait();
  }
  loop_.Stop();
  if (thread_.joinable()) thread_.join();
  store_.reset();  // commits what waits; nobody is left to be told
}

absl::Status Coordinator::Wait() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&ended_));
  return end_;
}

void Coordinator::Stop() { End(absl::OkStatus()); }

void Coordinator::End(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  if (std::exchange(ended_, true)) return;
  end_ = std::move(status);
}

void Coordinator::Tick() {
  registry_->Tick();
  rendezvous_->Tick();
  supervisor_->Tick();
  changes_->Tick();
  logs_->Tick();
  traces_->Tick();
  history_->Tick();
  table_->FlushProgress();
  const absl::Duration now = clock_->SinceBoot();
  if (now >= next_metrics_) {
    metrics_->Update(*table_, *registry_);
    next_metrics_ = now + kMetricsInterval;
  }
  {
    absl::MutexLock lock(&mutex_);
    last_tick_ = now;
  }
  loop_.After(kTickInterval, [this] { Tick(); });
}

absl::Status Coordinator::Health() {
  absl::MutexLock lock(&mutex_);
  if (ended_) return absl::UnavailableError("musterd is stopping");
  const absl::Duration silent = clock_->SinceBoot() - last_tick_;
  if (silent <= kStuckAfter) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the event loop has not turned for ", absl::FormatDuration(silent)));
}

v1::ClusterInfo Coordinator::Info() const {
  v1::ClusterInfo info;
  info.set_version(version_);
  info.set_cluster_id(cluster_id_);
  *info.mutable_started_at() = ToProto(started_at_);
  info.set_metrics_address(http_->address().ToString());
  for (const SchedulableWorker& worker : SnapshotDevices(*table_, *registry_)) {
    for (const SchedulableDevice& device : worker.devices) {
      info.set_devices(info.devices() + 1);
      const bool usable = worker.unusable.empty() && device.unusable.empty();
      if (usable && device.free) info.set_devices_free(info.devices_free() + 1);
    }
  }
  for (const auto& item : table_->jobs()) ++(*info.mutable_jobs())[StateName(item.second->state())];
  return info;
}

}  // namespace muster
