#include "worker/rank/rank_runner.h"

#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_codes.h"
#include "common/base/file_lock.h"
#include "common/base/lease_file.h"
#include "common/base/status_macros.h"
#include "common/rpc/address.h"
#include "common/rpc/exit_kind.h"
#include "common/rpc/proto_time.h"
#include "worker/comm/gloo_communicator.h"
#include "worker/engine/fingerprint.h"
#include "worker/rank/assignment_config.h"
#include "worker/rank/command_listener.h"
#include "worker/rank/initial_model.h"
#include "worker/rank/kept_tokenizer.h"
#include "worker/rank/process_time.h"
#include "worker/rank/report_observer.h"

namespace muster {
namespace {

constexpr absl::Duration kDefaultJoinDeadline = absl::Seconds(60);
constexpr absl::Duration kDefaultOperationDeadline = absl::Seconds(60);
// For the agent to take the last reports. A failed rank ends soon, so that the next attempt begins. The reports of one
// that did its work are all that anybody will know of its end: it waits for an agent that stands still; should that die
// instead, the kernel ends the rank.
constexpr absl::Duration kFlushOfFailed = absl::Seconds(2);
constexpr absl::Duration kFlushOfDone = absl::Minutes(5);
constexpr char kWorld[] = "world";
constexpr char kReady[] = "world/ready";

absl::Duration Or(const google::protobuf::Duration& duration, absl::Duration otherwise) {
  const absl::Duration value = FromProto(duration);
  return value > absl::ZeroDuration() ? value : otherwise;
}

v1::RankReport IdentityOf(const v1::Assignment& assignment) {
  v1::RankReport identity;
  identity.set_job_id(assignment.job_id());
  identity.set_attempt(assignment.attempt());
  identity.set_rank(assignment.rank());
  return identity;
}

CommandEvents CommandsTo(Trainer& trainer) {
  CommandEvents events;
  events.on_checkpoint = [&trainer] { trainer.RequestCheckpoint(); };
  events.on_trace = [&trainer](int64_t steps) { trainer.RequestTrace(steps); };
  return events;
}

}  // namespace

struct RankRunner::Parts {
  std::optional<FileLock> lock;
  std::optional<LeaseReader> lease;
  v1::Assignment assignment;
  RankRoots roots;
  std::unique_ptr<v1::RankService::Stub> agent;
  std::unique_ptr<v1::RendezvousService::Stub> coordinator;
  std::unique_ptr<Reporter> reporter;
  std::unique_ptr<ReportObserver> observer;
  std::unique_ptr<RendezvousClient> rendezvous;
  DataSources data;
  InitialModel initial;
  EngineConfig config;
};

int RankRunner::Run() {
  phase_began_ = ProcessStart();
  const absl::StatusOr<TrainingOutcome> outcome = RunToEnd();
  const int exit_code = outcome.ok() ? ExitCodeOf(*outcome) : ExitCodeOf(outcome.status(), stage_);
  if (!outcome.ok()) {
    std::fprintf(stderr, "muster-rank: error: %s\n", std::string(outcome.status().message()).c_str());
  } else {
    if (!rewind_.reason.empty()) std::printf("%s\n", rewind_.reason.c_str());
    std::printf("%s\n", Describe(*outcome));
    std::fflush(stdout);
  }
  ReportFinished(outcome.status(), exit_code);
  return exit_code;
}

absl::StatusOr<TrainingOutcome> RankRunner::RunToEnd() {
  MUSTER_RETURN_IF_ERROR(Prepare());
  EndPhase("process");
  stage_ = RankStage::kJoin;
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> world, JoinWorld());
  EndPhase("join");
  stage_ = RankStage::kBuild;
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, BuildTrainer(*world));
  EndPhase("restore");
  stage_ = RankStage::kTrain;
  ReportStarted(*trainer, parts_->config);
  // Ranks would hear of a request at different steps, and each that passed it on would have it done once more: rank 0
  // listens for all, and the step vote tells the others.
  std::optional<CommandListener> listener;
  if (parts_->assignment.rank() == 0) {
    listener.emplace(parts_->agent.get(), parts_->assignment, CommandsTo(*trainer));
  }
  {
    absl::MutexLock lock(&mutex_);
    trainer_ = trainer.get();
    if (stop_requested_) trainer_->RequestStop();
  }
  const absl::StatusOr<TrainingOutcome> outcome = trainer->Run();
  {
    absl::MutexLock lock(&mutex_);
    trainer_ = nullptr;
    ended_ = true;
  }
  if (outcome.ok() && *outcome == TrainingOutcome::kRewind) rewind_ = trainer->Rewind();
  // A rank that leaves early looks like one that died. What was trained is safe whatever becomes of the barrier.
  if (outcome.ok()) Barrier(*world).IgnoreError();
  return outcome;
}

absl::Status RankRunner::Prepare() {
  parts_ = std::make_shared<Parts>();
  Parts& parts = *parts_;
  if (!options_.lock_file.empty()) {
    MUSTER_ASSIGN_OR_RETURN(parts.lock, FileLock::Acquire(options_.lock_file));
  }
  if (!options_.lease_file.empty()) {
    MUSTER_ASSIGN_OR_RETURN(parts.lease, LeaseReader::Open(options_.lease_file));
  }
  MUSTER_ASSIGN_OR_RETURN(parts.assignment, ReadAssignment(options_.assignment_file));
  const v1::Assignment& assignment = parts.assignment;
  parts.roots = {options_.data_root, options_.checkpoint_root};

  parts.agent = v1::RankService::NewStub(MakeChannel(options_.agent));
  parts.reporter = std::make_unique<Reporter>(parts.agent.get(), IdentityOf(assignment));
  parts.coordinator = v1::RendezvousService::NewStub(MakeChannel(options_.coordinator));
  parts.rendezvous = std::make_unique<RendezvousClient>(
      parts.coordinator.get(), RankIdentity{assignment.job_id(), assignment.attempt(), assignment.rank(),
                                            assignment.resolved_spec().resources().ranks()});

  MUSTER_ASSIGN_OR_RETURN(parts.data, OpenData(assignment.resolved_spec(), parts.roots));
  MUSTER_ASSIGN_OR_RETURN(parts.config, MakeEngineConfig(assignment, parts.roots, parts.data.validation_windows()));
  MUSTER_RETURN_IF_ERROR(CheckEngineConfig(parts.config));
  MUSTER_ASSIGN_OR_RETURN(parts.initial, OpenInitialModel(assignment.resolved_spec(), parts.roots,
                                                          /*resumes=*/!assignment.resume_from().empty()));
  const RankCoordinate place = CoordinateOf(parts.config.layout, parts.config.rank);
  const bool leader = place.pipeline == parts.config.layout.pipeline - 1 && place.data == 0 && place.tensor == 0;
  parts.observer =
      std::make_unique<ReportObserver>([&parts](v1::RankReport report) { parts.reporter->Send(report); },
                                       assignment.rank(), assignment.attempt(), leader, options_.checkpoint_root);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Communicator>> RankRunner::JoinWorld() {
  const v1::Assignment& assignment = parts_->assignment;
  const absl::Duration deadline = Or(assignment.join_deadline(), kDefaultJoinDeadline);
  RendezvousClient& rendezvous = *parts_->rendezvous;
  MUSTER_RETURN_IF_ERROR(rendezvous.Join(kWorld, options_.host, deadline).status());

  GlooOptions gloo;
  gloo.rank = static_cast<int>(assignment.rank());
  gloo.size = static_cast<int>(parts_->config.layout.ranks());
  gloo.host = options_.host;
  gloo.setup_deadline = deadline;
  gloo.operation_deadline = Or(assignment.operation_deadline(), kDefaultOperationDeadline);
  GrpcRendezvousStore store(&rendezvous, kWorld, deadline);
  absl::StatusOr<std::unique_ptr<Communicator>> world = MakeGlooCommunicator(gloo, store);  // with a first barrier
  // All train or none does: those who were connected hear at once that somebody was not.
  const absl::Status vote = rendezvous.Vote(kReady, world.status(), deadline);
  if (!world.ok()) return world.status();
  MUSTER_RETURN_IF_ERROR(vote);
  return world;
}

absl::StatusOr<std::unique_ptr<Trainer>> RankRunner::BuildTrainer(Communicator& world) {
  TrainerParts trainer;
  trainer.world = &world;
  trainer.train = parts_->data.train.get();
  trainer.validation = parts_->data.validation.get();
  trainer.observer = parts_->observer.get();
  trainer.clock = clock_;
  if (parts_->lease.has_value()) {
    trainer.before_optimizer_step = [this] { return parts_->lease->Check(clock_->SinceBoot()); };
  }
  parts_->initial.GiveTo(trainer);
  absl::StatusOr<std::unique_ptr<Trainer>> created = Trainer::Create(parts_->config, trainer);
  if (created.ok() && parts_->initial.model.has_value()) parts_->observer->OnEvent(parts_->initial.Event());
  if (created.ok() && parts_->config.rank == 0) {
    MUSTER_RETURN_IF_ERROR(
        KeepTokenizer(parts_->assignment.resolved_spec(), parts_->roots, parts_->config.checkpoint.directory));
  }
  return created;
}

void RankRunner::ReportStarted(const Trainer& trainer, const EngineConfig& config) {
  v1::RankReport report;
  v1::RankStarted& started = *report.mutable_started();
  SetMemory(trainer.Memory(), started);
  started.set_resumed_step(parts_->assignment.resume_step());
  for (const auto& [phase, seconds] : startup_seconds_) (*started.mutable_startup_seconds())[phase] = seconds;
  for (const auto& [name, value] : Fingerprint(config)) (*started.mutable_fingerprint())[name] = value;
  std::printf("rank %lld of %lld, attempt %lld: arena %lld bytes, joined in %.3f s, trains from step %lld\n",
              static_cast<long long>(config.rank), static_cast<long long>(config.layout.ranks()),
              static_cast<long long>(parts_->assignment.attempt()), static_cast<long long>(started.arena_bytes()),
              startup_seconds_["join"], static_cast<long long>(started.resumed_step()));
  std::fflush(stdout);
  parts_->reporter->Send(std::move(report));
}

void RankRunner::ReportFinished(const absl::Status& status, int exit_code) {
  if (parts_ == nullptr || parts_->reporter == nullptr) return;
  v1::RankReport report;
  report.mutable_finished()->set_kind(ExitKindOf(exit_code));
  report.mutable_finished()->set_message(std::string(status.message()));
  if (exit_code == kExitRewind) {
    v1::Rewind& rewind = *report.mutable_finished()->mutable_rewind();
    rewind.set_step(rewind_.step);
    rewind.set_target_step(rewind_.target_step);
    rewind.set_next_sample(rewind_.next_sample);
    rewind.set_type(rewind_.type);
    rewind.set_reason(rewind_.reason);
    report.mutable_finished()->set_message(rewind_.reason);
  }
  parts_->reporter->Send(std::move(report));
  parts_->reporter->Flush(status.ok() ? kFlushOfDone : kFlushOfFailed);
}

void RankRunner::EndPhase(const std::string& name) {
  const absl::Duration now = clock_->SinceBoot();
  startup_seconds_[name] = absl::ToDoubleSeconds(now - phase_began_);
  phase_began_ = now;
}

bool RankRunner::RequestStop() {
  absl::MutexLock lock(&mutex_);
  stop_requested_ = true;
  if (trainer_ != nullptr) trainer_->RequestStop();
  return trainer_ != nullptr || ended_;
}

}  // namespace muster
