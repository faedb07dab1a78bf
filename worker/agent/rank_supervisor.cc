#include "worker/agent/rank_supervisor.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/rpc/proto_time.h"
#include "worker/agent/exit_cause.h"
#include "worker/agent/process_stats.h"

namespace muster {
namespace {

constexpr absl::Duration kDefaultGrace = absl::Seconds(30);

// What all ranks of the gang do together.
bool EndedWell(v1::ExitKind kind) {
  return kind == v1::EXIT_COMPLETED || kind == v1::EXIT_STOPPED || kind == v1::EXIT_REWIND;
}

absl::Duration GraceOf(const v1::Assignment& assignment) {
  return assignment.has_stop_grace() ? FromProto(assignment.stop_grace()) : kDefaultGrace;
}

}  // namespace

struct RankSupervisor::Rank {
  RankKey key;
  v1::Assignment assignment;
  v1::RankPhase phase = v1::RANK_STARTING;
  absl::Time started_at;
  int64_t step = 0;
  v1::RankFinished reported;
  int64_t peak_resident_bytes = 0;  // as far as sampled; the whole truth once it is reaped

  ChildProcess child;
  FdWatcher::Id output_watch = 0;
  FdWatcher::Id exit_watch = 0;
  EventLoop::TimerId grace_timer = 0;  // 0: none
  int64_t memory_kills_before = 0;     // OutOfMemoryKills at its start
  bool asked_to_stop = false;
  std::string killed_because;  // empty: not killed by us

  v1::RankExit exit;          // when phase is RANK_EXITED
  bool acknowledged = false;  // kept only so that a repeated Desired does not start it again

  bool living() const { return phase != v1::RANK_EXITED; }
};

RankSupervisor::RankSupervisor(EventLoop* loop, const Clock* clock, FdWatcher* watcher, LogSpool* spool,
                               RankCommandOptions command, SupervisorEvents events)
    : loop_(loop),
      clock_(clock),
      watcher_(watcher),
      spool_(spool),
      command_(std::move(command)),
      events_(std::move(events)) {}

RankSupervisor::~RankSupervisor() {
  for (auto& [key, rank] : ranks_) {
    if (rank->grace_timer != 0) loop_->CancelTimer(rank->grace_timer);
    if (!rank->living()) continue;
    watcher_->Forget(rank->output_watch);
    watcher_->Forget(rank->exit_watch);
    SignalChild(rank->child, SIGKILL);
    ReapChild(rank->child).IgnoreError();
  }
}

void RankSupervisor::BeginSession() { session_began_ = true; }

void RankSupervisor::SetDesired(v1::Desired desired) {
  if (!session_began_ && desired.generation() < desired_.generation()) return;
  session_began_ = false;
  desired_ = std::move(desired);
  ConvergeNow();
  // A rank that was acknowledged and is not desired any more cannot be started by a repeated message: forget it.
  std::map<RankKey, bool> wanted;
  for (const v1::Assignment& assignment : desired_.assignments()) wanted[RankKey::Of(assignment)] = true;
  for (auto rank = ranks_.begin(); rank != ranks_.end();) {
    rank = rank->second->acknowledged && wanted.count(rank->first) == 0 ? ranks_.erase(rank) : std::next(rank);
  }
}

void RankSupervisor::ConvergeNow() {
  std::map<RankKey, LocalRank> local;
  for (const auto& [key, rank] : ranks_) {
    local[key] =
        LocalRank{rank->assignment.device(), !rank->living(), rank->asked_to_stop, !rank->killed_because.empty()};
  }
  std::map<RankKey, const v1::Assignment*> assignments;
  for (const v1::Assignment& assignment : desired_.assignments()) assignments[RankKey::Of(assignment)] = &assignment;
  for (const ConvergenceStep& step : Converge(desired_, local)) {
    switch (step.kind) {
      case ConvergenceStep::Kind::kStart:
        if (!closing_) Start(*assignments[step.rank]);
        break;
      case ConvergenceStep::Kind::kStop:
        Stop(*ranks_[step.rank], step.reason, GraceOf(ranks_[step.rank]->assignment));
        break;
      case ConvergenceStep::Kind::kKill:
        Kill(*ranks_[step.rank], step.reason);
        break;
      case ConvergenceStep::Kind::kReportAbsent:
        ReportAbsent(*assignments[step.rank]);
        break;
    }
  }
}

void RankSupervisor::Start(const v1::Assignment& assignment) {
  const RankKey key = RankKey::Of(assignment);
  auto owned = std::make_unique<Rank>();
  Rank& rank = *owned;
  rank.key = key;
  rank.assignment = assignment;
  rank.started_at = clock_->Now();
  rank.memory_kills_before = OutOfMemoryKills();
  ranks_[key] = std::move(owned);

  absl::Status status = spool_->Begin(key);
  absl::StatusOr<ChildCommand> command = PrepareRank(command_, assignment);
  if (status.ok()) status = command.status();
  absl::StatusOr<ChildProcess> child = status.ok() ? StartChild(*command) : status;
  if (!child.ok()) {
    v1::RankExit exit;
    exit.set_kind(v1::EXIT_NOT_STARTED);
    exit.set_exit_code(-1);
    exit.set_message(absl::StrCat("could not be started: ", child.status().message()));
    End(rank, std::move(exit));
    return;
  }
  rank.child = *std::move(child);
  rank.output_watch = watcher_->Watch(rank.child.output.get(), [this, key] { ReadOutput(key); });
  rank.exit_watch = watcher_->Watch(rank.child.pidfd.get(), [this, key] { OnExit(key); });
  events_.on_change();
}

void RankSupervisor::Stop(Rank& rank, const std::string& reason, absl::Duration grace) {
  if (!rank.living() || rank.asked_to_stop) return;
  rank.asked_to_stop = true;
  SignalChild(rank.child, SIGTERM);
  const std::string late = absl::StrCat(reason, ", and it did not within ", absl::FormatDuration(grace));
  rank.grace_timer = loop_->After(grace, [this, key = rank.key, late] {
    Rank* found = Find(key);
    if (found == nullptr) return;
    found->grace_timer = 0;
    Kill(*found, late);
  });
}

void RankSupervisor::Kill(Rank& rank, const std::string& reason) {
  if (!rank.living() || !rank.killed_because.empty()) return;
  rank.killed_because = reason;
  SignalChild(rank.child, SIGKILL);
}

void RankSupervisor::ReportAbsent(const v1::Assignment& assignment) {
  v1::ObservedRank absent;
  absent.set_job_id(assignment.job_id());
  absent.set_attempt(assignment.attempt());
  absent.set_rank(assignment.rank());
  absent.set_device(assignment.device());
  absent.mutable_exit()->set_kind(v1::EXIT_KILLED);
  absent.mutable_exit()->set_exit_code(-1);
  absent.mutable_exit()->set_message("it does not run on this worker");
  *absent.mutable_exit()->mutable_time() = ToProto(clock_->Now());
  AdoptEnded(absent);
}

void RankSupervisor::AdoptEnded(const v1::ObservedRank& ended) {
  auto rank = std::make_unique<Rank>();
  rank->key = RankKey::Of(ended);
  rank->assignment.set_job_id(ended.job_id());
  rank->assignment.set_attempt(ended.attempt());
  rank->assignment.set_rank(ended.rank());
  rank->assignment.set_device(ended.device());
  rank->phase = v1::RANK_EXITED;
  rank->exit = ended.exit();
  ranks_[RankKey::Of(ended)] = std::move(rank);
  events_.on_change();
}

void RankSupervisor::ReadOutput(const RankKey& key) {
  Rank* rank = Find(key);
  if (rank == nullptr || !rank->living()) return;
  std::array<char, 64 << 10> buffer;
  for (int reads = 0; reads < 16; ++reads) {  // others want the loop too
    const ssize_t count = read(rank->child.output.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) return watcher_->Forget(rank->output_watch);
    if (count < 0) break;
    spool_->Append(key, absl::string_view(buffer.data(), static_cast<size_t>(count)));
  }
  watcher_->Rearm(rank->output_watch);
}

void RankSupervisor::OnExit(const RankKey& key) {
  Rank* rank = Find(key);
  if (rank == nullptr || !rank->living()) return;
  SignalChild(rank->child, SIGKILL);  // whatever it left in its process group
  const ChildEnd end = ReapChild(rank->child).value_or(ChildEnd{});
  rank->peak_resident_bytes = std::max(rank->peak_resident_bytes, end.peak_resident_bytes);
  ReadOutput(key);
  ExitContext context;
  context.killed_because = rank->killed_because;
  context.asked_to_stop = rank->asked_to_stop;
  context.kernel_killed_for_memory = OutOfMemoryKills() > rank->memory_kills_before;
  context.reported = rank->reported;
  context.last_lines = spool_->End(key);
  watcher_->Forget(rank->output_watch);
  watcher_->Forget(rank->exit_watch);
  End(*rank, ExplainExit(end, context));
}

void RankSupervisor::End(Rank& rank, v1::RankExit exit) {
  rank.phase = v1::RANK_EXITED;
  rank.exit = std::move(exit);
  *rank.exit.mutable_time() = ToProto(clock_->Now());
  if (rank.grace_timer != 0) loop_->CancelTimer(rank.grace_timer);
  rank.grace_timer = 0;
  rank.child = ChildProcess{};
  if (!EndedWell(rank.exit.kind())) KillRestOfGang(rank);
  // So that the cause survives us. Not before the gang is killed: a disk may be slow.
  const std::string directory = RankDirectory(command_.state_dir, rank.key);
  WriteFileDurably(directory + "/exit.binpb", rank.exit.SerializeAsString()).IgnoreError();
  events_.on_ended(rank.key, directory);
  events_.on_change();
  loop_->Post([this] { ConvergeNow(); });  // its device is free
}

void RankSupervisor::KillRestOfGang(const Rank& failed) {
  const std::string reason = absl::StrCat("rank ", failed.key.rank, " of its gang failed: ", failed.exit.message());
  for (auto& [key, rank] : ranks_) {
    if (key.SameGang(failed.key)) Kill(*rank, reason);
  }
}

void RankSupervisor::Acknowledge(const v1::ExitsAcknowledged& acknowledged) {
  for (const v1::ObservedRank& ended : acknowledged.ranks()) {
    const RankKey key = RankKey::Of(ended);
    Rank* rank = Find(key);
    if (rank == nullptr || rank->living() || rank->acknowledged) continue;
    rank->acknowledged = true;
    RemoveTree(RankDirectory(command_.state_dir, key), command_.state_dir).IgnoreError();
    events_.on_forgotten(key);
  }
}

bool RankSupervisor::OnReport(const v1::RankReport& report) {
  Rank* rank = Find(RankKey::Of(report));
  if (rank == nullptr || !rank->living()) return false;
  const v1::RankPhase before = rank->phase;
  if (report.has_step()) {
    rank->step = report.step().step();
  } else if (report.has_started()) {
    rank->step = report.started().resumed_step();
  } else if (report.has_finished()) {
    rank->reported = report.finished();
  }
  const bool joined = report.report_case() != v1::RankReport::REPORT_NOT_SET && !report.has_finished();
  if (joined) {
    rank->phase = v1::RANK_TRAINING;
  } else if (rank->phase == v1::RANK_STARTING) {
    rank->phase = v1::RANK_JOINING;
  }
  if (rank->phase != before) events_.on_change();
  return true;
}

void RankSupervisor::KillAll(const std::string& reason) {
  for (auto& [key, rank] : ranks_) Kill(*rank, reason);
}

void RankSupervisor::StopAll(absl::Duration grace) {
  closing_ = true;
  for (auto& [key, rank] : ranks_) Stop(*rank, "its worker is ending", grace);
}

int64_t RankSupervisor::living() const {
  int64_t count = 0;
  for (const auto& [key, rank] : ranks_) count += rank->living() ? 1 : 0;
  return count;
}

bool RankSupervisor::all_acknowledged() const {
  for (const auto& [key, rank] : ranks_) {
    if (!rank->acknowledged) return false;
  }
  return true;
}

std::vector<v1::ObservedRank> RankSupervisor::Observe() {
  std::vector<v1::ObservedRank> observed;
  for (auto& [key, rank] : ranks_) {
    if (rank->acknowledged) continue;
    v1::ObservedRank& seen = observed.emplace_back();
    seen.set_job_id(key.job_id);
    seen.set_attempt(key.attempt);
    seen.set_rank(key.rank);
    seen.set_device(rank->assignment.device());
    seen.set_phase(rank->phase);
    seen.set_step(rank->step);
    seen.set_memory_limit_bytes(RankMemoryBytes(command_, rank->assignment));
    *seen.mutable_started_at() = ToProto(rank->started_at);
    if (rank->living()) {
      seen.set_pid(rank->child.pid);
      // A process on its way out has no memory any more: what was seen before stays.
      rank->peak_resident_bytes = std::max(rank->peak_resident_bytes, PeakResidentBytes(rank->child.pid));
    } else {
      *seen.mutable_exit() = rank->exit;
    }
    seen.set_resident_bytes(rank->peak_resident_bytes);
  }
  return observed;
}

const v1::Assignment* RankSupervisor::FindAssignment(const RankKey& rank) const {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? nullptr : &found->second->assignment;
}

RankSupervisor::Rank* RankSupervisor::Find(const RankKey& key) {
  const auto found = ranks_.find(key);
  return found == ranks_.end() ? nullptr : found->second.get();
}

}  // namespace muster
