#include "worker/rank/local_job.h"

#include <algorithm>
#include <cstdio>
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

class PrintingObserver : public TrainerObserver {
 public:
  explicit PrintingObserver(int64_t steps) : steps_(steps) {}

  void OnStep(const StepReport& report) override {
    const double rate = report.seconds > 0 ? static_cast<double>(report.tokens) / report.seconds : 0;
    std::printf("step %lld/%lld  loss %.4f  gradient norm %.3f  %.0f tokens/s\n", static_cast<long long>(report.step),
                static_cast<long long>(steps_), report.loss, report.gradient_norm, rate);
    std::fflush(stdout);
  }
  void OnValidation(const ValidationReport& report) override {
    std::printf("validation after step %lld  loss %.4f\n", static_cast<long long>(report.step), report.loss);
  }
  void OnCheckpoint(const CheckpointReport& report) override {
    std::printf("checkpoint of step %lld in %s\n", static_cast<long long>(report.step), report.directory.c_str());
  }
  void OnEvent(const EngineEvent& event) override {
    std::printf("%s: %s\n", event.type.c_str(), event.message.c_str());
  }
  void OnTrace(const TraceReport& /*report*/) override {}

 private:
  const int64_t steps_;
};

}  // namespace

int LocalJob::Run() {
  if (const absl::Status status = Prepare(); !status.ok()) {
    std::fprintf(stderr, "muster-rank: error: %s\n", std::string(status.message()).c_str());
    return ExitCodeOf(status, RankStage::kPrepare);
  }
  const std::vector<RankResult> results = RunRanks();
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }
  // The others only tell that a peer is gone: the first error that is not about a peer is the cause.
  const RankResult* failed = nullptr;
  for (const RankResult& result : results) {
    if (result.outcome.ok()) continue;
    if (failed == nullptr || absl::IsUnavailable(failed->outcome.status())) failed = &result;
  }
  if (failed != nullptr) {
    std::fprintf(stderr, "muster-rank: error: %s\n", std::string(failed->outcome.status().message()).c_str());
    return ExitCodeOf(failed->outcome.status(), failed->stage);
  }
  return *results.front().outcome == TrainingOutcome::kStopped ? kExitStopped : kExitCompleted;
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
  MUSTER_ASSIGN_OR_RETURN(const std::vector<CheckpointId> earlier, FindCheckpoints(config.checkpoint.directory));
  for (const CheckpointId& id : earlier) attempt_ = std::max(attempt_, id.attempt + 1);
  return KeepTokenizer(spec_, roots, config.checkpoint.directory);
}

v1::Assignment LocalJob::AssignmentOf(int64_t rank) const {
  v1::Assignment assignment;
  assignment.set_job_id(kJobId);
  assignment.set_attempt(attempt_);
  assignment.set_rank(rank);
  *assignment.mutable_resolved_spec() = spec_;
  return assignment;
}

std::vector<LocalJob::RankResult> LocalJob::RunRanks() {
  const int size = static_cast<int>(spec_.resources().ranks());
  std::vector<std::unique_ptr<LocalCommunicator>> world = MakeLocalGroup(size, kOperationDeadline);
  std::vector<RankResult> results(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([this, rank, &world, &results] {
      const size_t index = static_cast<size_t>(rank);
      results[index] = RunRank(rank, *world[index]);
      world[index].reset();  // whoever still needs this rank hears that it is gone
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

LocalJob::RankResult LocalJob::RunRank(int64_t rank, LocalCommunicator& world) {
  const absl::StatusOr<EngineConfig> config =
      MakeEngineConfig(AssignmentOf(rank), {options_.data_root, options_.checkpoint_root}, data_.validation_windows());
  if (!config.ok()) return {config.status(), RankStage::kPrepare};

  PrintingObserver printer(config->training.steps);
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
  return result;
}

bool LocalJob::RequestStop() {
  absl::MutexLock lock(&mutex_);
  stop_requested_ = true;
  for (Trainer* trainer : training_) trainer->RequestStop();
  return !training_.empty() || ended_;
}

}  // namespace muster
