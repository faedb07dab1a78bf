#include "worker/rank/local_job.h"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_codes.h"
#include "common/base/status_macros.h"
#include "common/formats/checkpoint_paths.h"
#include "common/spec/job_file.h"
#include "common/spec/resolve.h"
#include "worker/rank/assignment_config.h"
#include "worker/rank/kept_tokenizer.h"

namespace muster {
namespace {

// Threads of one process wait for each other only; a debugger may hold one for long.
constexpr absl::Duration kOperationDeadline = absl::Hours(1);
constexpr char kJobId[] = "local";

// What a person at a terminal wants to see, from one rank.
class PrintingObserver : public TrainerObserver {
 public:
  using OnSaved = std::function<void(const CheckpointReport& report)>;

  PrintingObserver(int64_t steps, OnSaved on_saved) : steps_(steps), on_saved_(std::move(on_saved)) {}

  void OnStep(const StepReport& report) override {
    const double rate = report.seconds > 0 ? static_cast<double>(report.tokens) / report.seconds : 0;
    std::printf("step %lld/%lld  loss %.4f  gradient norm %.3f  %.0f tokens/s%s\n", static_cast<long long>(report.step),
                static_cast<long long>(steps_), report.loss, report.gradient_norm, rate,
                report.skipped ? "  skipped" : "");
    std::fflush(stdout);
  }
  void OnValidation(const ValidationReport& report) override {
    std::printf("validation after step %lld  loss %.4f  perplexity %.4g\n", static_cast<long long>(report.step),
                report.loss, report.perplexity);
  }
  void OnCheckpoint(const CheckpointReport& report) override {
    std::printf("checkpoint of step %lld in %s\n", static_cast<long long>(report.step), report.directory.c_str());
    on_saved_(report);
  }
  void OnEvent(const EngineEvent& event) override {
    std::printf("%s: %s\n", event.type.c_str(), event.message.c_str());
  }
  void OnTrace(const TraceReport& /*report*/) override {}

 private:
  const int64_t steps_;
  const OnSaved on_saved_;
};

// As debuggers list it.
void NameThread(const std::string& name) { pthread_setname_np(pthread_self(), name.c_str()); }

int Fail(const absl::Status& error, RankStage stage) {
  std::fprintf(stderr, "muster-rank: error: %s\n", std::string(error.message()).c_str());
  return ExitCodeOf(error, stage);
}

}  // namespace

int LocalJob::Run() {
  if (const absl::Status status = Prepare(); !status.ok()) return Fail(status, RankStage::kPrepare);
  for (;; ++attempt_) {
    const RankResult result = RunAttempt();
    if (!result.outcome.ok()) {
      const bool unreadable = ExitCodeOf(result.outcome.status(), result.stage) == kExitBadCheckpoint;
      if (!unreadable || lineage_.size() < 2) return Fail(result.outcome.status(), result.stage);
      lineage_.pop_back();
      std::printf("%s; goes back to the checkpoint of step %lld\n",
                  std::string(result.outcome.status().message()).c_str(), static_cast<long long>(lineage_.back().step));
      continue;
    }
    if (*result.outcome != TrainingOutcome::kRewind) {
      absl::MutexLock lock(&mutex_);
      ended_ = true;
      return ExitCodeOf(*result.outcome);
    }
    if (const absl::Status status = GoBack(result.rewind); !status.ok()) return Fail(status, RankStage::kTrain);
  }
}

LocalJob::RankResult LocalJob::RunAttempt() {
  std::vector<RankResult> results = RunRanks();
  // The others only tell that a peer is gone: the first error that is not about a peer is the cause.
  const RankResult* failed = nullptr;
  for (const RankResult& result : results) {
    if (result.outcome.ok()) continue;
    if (failed == nullptr || absl::IsUnavailable(failed->outcome.status())) failed = &result;
  }
  return failed != nullptr ? *failed : results.front();
}

absl::Status LocalJob::GoBack(const RewindPoint& rewind) {
  const int64_t most = spec_.policy().max_rewinds();
  if (rewinds_++ == most) {
    return absl::FailedPreconditionError(
        absl::StrCat(rewind.reason, "; does not go back again: policy.max_rewinds is ", most, " and all are spent"));
  }
  while (!lineage_.empty() && lineage_.back().step > rewind.target_step) lineage_.pop_back();
  next_sample_ = rewind.next_sample;
  std::printf("%s_REWIND: %s; goes back to step %lld, on with sample %lld\n", rewind.type.c_str(),
              rewind.reason.c_str(), static_cast<long long>(lineage_.empty() ? 0 : lineage_.back().step),
              static_cast<long long>(next_sample_));
  return absl::OkStatus();
}

absl::Status LocalJob::Prepare() {
  MUSTER_ASSIGN_OR_RETURN(const JobFile file, ReadJobFile(options_.local_file, options_.data_root));
  ResolveOptions resolve;
  resolve.job_id = kJobId;
  const ResolvedJob resolved = ResolveSpec(file.spec, resolve);
  if (!resolved.plan.feasible) return absl::InvalidArgumentError(file.Describe(resolved.plan.problems));
  spec_ = resolved.spec;
  const RankRoots roots{options_.data_root, options_.checkpoint_root};
  MUSTER_ASSIGN_OR_RETURN(data_, OpenData(spec_, roots));
  MUSTER_ASSIGN_OR_RETURN(initial_, OpenInitialModel(spec_, roots, /*resumes=*/false));
  MUSTER_ASSIGN_OR_RETURN(const EngineConfig config,
                          MakeEngineConfig(AssignmentOf(0), roots, /*validation_windows=*/0));
  directory_ = config.checkpoint.directory;
  MUSTER_RETURN_IF_ERROR(FindOwnCheckpoints());
  return KeepTokenizer(spec_, roots, directory_);
}

absl::Status LocalJob::FindOwnCheckpoints() {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<CheckpointId> earlier, FindCheckpoints(directory_));
  for (const CheckpointId& id : earlier) attempt_ = std::max(attempt_, id.attempt + 1);
  if (!options_.resume) return absl::OkStatus();
  if (earlier.empty()) {
    return absl::NotFoundError(absl::StrCat("--resume: there is no checkpoint in ", directory_));
  }
  // Of the newest attempt that wrote any: what it resumed from is older, and may be off its line.
  for (const CheckpointId& id : earlier) {
    if (id.attempt + 1 == attempt_) lineage_.push_back(id);
  }
  std::sort(lineage_.begin(), lineage_.end());
  return absl::OkStatus();
}

void LocalJob::NoteCheckpoint(const CheckpointReport& report) {
  lineage_.push_back({.attempt = attempt_, .step = report.step});
}

v1::Assignment LocalJob::AssignmentOf(int64_t rank) const {
  v1::Assignment assignment;
  assignment.set_job_id(kJobId);
  assignment.set_attempt(attempt_);
  assignment.set_rank(rank);
  *assignment.mutable_resolved_spec() = spec_;
  assignment.set_next_sample(next_sample_);
  return assignment;
}

std::vector<LocalJob::RankResult> LocalJob::RunRanks() {
  const int size = static_cast<int>(spec_.resources().ranks());
  std::vector<std::unique_ptr<LocalCommunicator>> world = MakeLocalGroup(size, kOperationDeadline);
  std::vector<RankResult> results(static_cast<size_t>(size));
  const std::string resume_from = lineage_.empty() ? "" : CheckpointDirectory(directory_, lineage_.back());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([this, rank, &resume_from, &world, &results] {
      NameThread(absl::StrCat("rank ", rank));
      const size_t index = static_cast<size_t>(rank);
      results[index] = RunRank(rank, resume_from, *world[index]);
      world[index].reset();  // whoever still needs this rank hears that it is gone
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

LocalJob::RankResult LocalJob::RunRank(int64_t rank, const std::string& resume_from, LocalCommunicator& world) {
  absl::StatusOr<EngineConfig> config =
      MakeEngineConfig(AssignmentOf(rank), {options_.data_root, options_.checkpoint_root}, data_.validation_windows());
  if (!config.ok()) return {config.status(), RankStage::kPrepare};

  if (!resume_from.empty()) {
    config->checkpoint.resume_from = resume_from;
    config->validation.before_first_step = false;
  }
  PrintingObserver printer(config->training.steps, [this](const CheckpointReport& report) { NoteCheckpoint(report); });
  TrainerParts parts;
  parts.world = &world;
  parts.train = data_.train.get();
  parts.validation = data_.validation.get();
  parts.observer = rank == 0 ? &printer : nullptr;  // losses are the same on every rank
  parts.clock = clock_;
  initial_.GiveTo(parts);
  const absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(*config, parts);
  if (!trainer.ok()) return {trainer.status(), RankStage::kBuild};
  if (rank == 0 && initial_.model.has_value()) printer.OnEvent(initial_.Event());
  {
    absl::MutexLock lock(&mutex_);
    training_.push_back(trainer->get());
    if (stop_requested_) (*trainer)->RequestStop();
  }
  RankResult result{(*trainer)->Run(), RankStage::kTrain};
  {
    absl::MutexLock lock(&mutex_);
    training_.erase(std::find(training_.begin(), training_.end(), trainer->get()));
  }
  if (result.outcome.ok()) Barrier(world).IgnoreError();
  if (result.outcome.ok() && *result.outcome == TrainingOutcome::kRewind) result.rewind = (*trainer)->Rewind();
  return result;
}

bool LocalJob::RequestStop() {
  absl::MutexLock lock(&mutex_);
  stop_requested_ = true;
  for (Trainer* trainer : training_) trainer->RequestStop();
  return !training_.empty() || ended_;
}

}  // namespace muster
