#include "worker/engine/trainer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "worker/data/data_wait_advice.h"
#include "worker/engine/batches.h"
#include "worker/engine/checkpoint_saver.h"
#include "worker/engine/checkpointing.h"
#include "worker/engine/diagnosis.h"
#include "worker/engine/gather_strings.h"
#include "worker/engine/initial_weights.h"
#include "worker/engine/lr_schedule.h"
#include "worker/engine/rank_engine.h"
#include "worker/engine/self_check.h"
#include "worker/engine/step_policy.h"
#include "worker/engine/step_vote.h"

namespace muster {
namespace {

class RankTrainer : public Trainer {
 public:
  RankTrainer(const TrainerParts& parts, std::unique_ptr<RankEngine> engine, TrainingPosition position,
              const StepPolicy& policy, TrainingBatches batches, const ValidationBatches& validation)
      : parts_(parts),
        engine_(std::move(engine)),
        config_(engine_->config),
        position_(position),
        policy_(policy),
        batches_(std::move(batches)),
        validation_(validation),
        data_wait_(config_.layout.prefetch_steps, config_.loader_threads),
        saver_(*parts_.world, config_, engine_->device, *parts_.clock, engine_->parameters,
               engine_->checkpoint_staging) {}

  MemoryReport Memory() const override { return engine_->Memory(); }
  absl::StatusOr<TrainingOutcome> Run() override;
  const RewindPoint& Rewind() const override { return rewind_; }
  void RequestStop() override { stop_requested_.store(true, std::memory_order_relaxed); }
  void RequestCheckpoint() override { checkpoint_requested_.store(true, std::memory_order_relaxed); }
  void RequestTrace(int64_t steps) override { trace_requested_.store(steps, std::memory_order_relaxed); }
  absl::Status ForEachWeight(const WeightVisitor& visit) const override;

 private:
  absl::StatusOr<StepVerdict> ComputeGradients();
  absl::StatusOr<StepDecision> Judge(const StepVerdict& verdict);
  absl::StatusOr<StepReport> EndStep(const StepVerdict& verdict, StepAction action);
  absl::StatusOr<int64_t> GlobalTargets();
  absl::StatusOr<StepVerdict> Vote(double loss_sum);
  absl::StatusOr<std::vector<CheckpointSaver::Result>> SaveCheckpoints(const StepVerdict& verdict);
  void Tell(const CheckpointSaver::Result& save);
  absl::Status Validate();

  void Tell(const StepDecision& decision);
  void AdviseOnDataWait(const StepReport& step);
  bool CheckpointDue(const StepVerdict& verdict) const;
  bool ValidationDue() const;

  const TrainerParts parts_;
  const std::unique_ptr<RankEngine> engine_;
  const EngineConfig& config_;
  TrainingPosition position_;
  StepPolicy policy_;
  TrainingBatches batches_;
  ValidationBatches validation_;
  DataWaitAdvisor data_wait_;
  RewindPoint rewind_;
  Pipeline::MicroBatchAt micro_batch_at_;  // of the step under way
  CheckpointSaver saver_;
  std::atomic<bool> stop_requested_{false};
  std::atomic<bool> checkpoint_requested_{false};
  std::atomic<int64_t> trace_requested_{0};  // steps
};

// ---- the loop ----------------------------------------------------------------------------------------------

absl::StatusOr<TrainingOutcome> RankTrainer::Run() {
  if (config_.validation.before_first_step) MUSTER_RETURN_IF_ERROR(Validate());
  while (position_.steps_done < config_.training.steps) {
    engine_->timer.Restart();
    engine_->recorder.BeginStep(position_.steps_done + 1);
    MUSTER_ASSIGN_OR_RETURN(const StepVerdict verdict, ComputeGradients());
    MUSTER_ASSIGN_OR_RETURN(const StepDecision decision, Judge(verdict));
    if (decision.action == StepAction::kRewind) {
      if (saver_.busy()) Tell(saver_.Finish());  // it may be the one to go back to
      return TrainingOutcome::kRewind;
    }
    MUSTER_ASSIGN_OR_RETURN(StepReport step, EndStep(verdict, decision.action));

    // Before the step's checkpoint: what resumes from it has this behind it.
    if (ValidationDue()) MUSTER_RETURN_IF_ERROR(Validate());
    MUSTER_ASSIGN_OR_RETURN(const std::vector<CheckpointSaver::Result> saves, SaveCheckpoints(verdict));

    step.phase_seconds = engine_->timer.Seconds();
    for (const double seconds : step.phase_seconds) step.seconds += seconds;
    const bool last = verdict.stop || position_.steps_done == config_.training.steps;
    const std::optional<TraceReport> trace = engine_->recorder.EndStep(last);
    engine_->recorder.Schedule(step.step + 1, verdict.trace_steps);
    if (parts_.observer != nullptr) {
      parts_.observer->OnStep(step);
      AdviseOnDataWait(step);
      for (const CheckpointSaver::Result& save : saves) Tell(save);
      if (trace.has_value()) parts_.observer->OnTrace(*trace);
    }
    if (verdict.stop && position_.steps_done < config_.training.steps) return TrainingOutcome::kStopped;
  }
  return TrainingOutcome::kCompleted;
}

// Forward and backward of the global batch, up to what all ranks agree on.
absl::StatusOr<StepVerdict> RankTrainer::ComputeGradients() {
  RankEngine& engine = *engine_;
  {
    PhaseScope scope(engine.timer, Phase::kDataWait);
    MUSTER_RETURN_IF_ERROR(batches_.Next());
  }
  MUSTER_ASSIGN_OR_RETURN(const int64_t targets, GlobalTargets());
  const double scale = targets > 0 ? policy_.loss_scale() / static_cast<double>(targets) : 0;
  micro_batch_at_ = [this, scale](int64_t i) { return batches_.At(i, static_cast<float>(scale)); };
  const auto unit_done = [&](const Unit& unit) { return engine.reduction.GradientsReady(unit.index); };
  MUSTER_ASSIGN_OR_RETURN(const double loss_sum, engine.pipeline.Train(micro_batch_at_, unit_done));
  return Vote(loss_sum);
}

// What becomes of the step by the job's policy, the same on every rank. An error ends the run.
absl::StatusOr<StepDecision> RankTrainer::Judge(const StepVerdict& verdict) {
  StepDecision decision = policy_.Judge(verdict);
  if (decision.event == kNonFiniteEvent) {
    MUSTER_ASSIGN_OR_RETURN(decision.reason,
                            ExplainNonFinite(*parts_.world, config_, engine_->pipeline, micro_batch_at_, verdict));
  }
  const int64_t step = position_.steps_done + 1;
  decision.reason = absl::StrCat("step ", step, ": ", decision.reason);
  if (decision.action == StepAction::kFail) {
    return absl::FailedPreconditionError(
        absl::StrCat(decision.reason,
                     "; nothing was updated: lower the learning rate, lengthen the warm-up or look at the data of this "
                     "step, or choose another policy.non_finite"));
  }
  if (decision.action == StepAction::kRewind) {
    rewind_ = {.step = step,
               .target_step = std::max<int64_t>(0, step - 1 - config_.policy.rewind_steps),
               .next_sample = position_.consumed_samples + config_.layout.global_batch(),
               .type = decision.event,
               .reason = decision.reason};
  } else if (!decision.event.empty()) {
    Tell(decision);
  }
  return decision;
}

// Updates the weights, or does not, and counts the step.
absl::StatusOr<StepReport> RankTrainer::EndStep(const StepVerdict& verdict, StepAction action) {
  RankEngine& engine = *engine_;
  if (parts_.before_optimizer_step) MUSTER_RETURN_IF_ERROR(parts_.before_optimizer_step());
  StepReport report{.step = ++position_.steps_done,
                    .loss = verdict.loss,
                    .tokens = verdict.counted_targets,
                    .gradient_norm = verdict.gradient_norm,
                    .loss_scale = verdict.loss_scale,
                    .skipped = action != StepAction::kUpdate,
                    .skipped_steps = policy_.skipped_steps(),
                    .memory = engine.Memory()};
  position_.consumed_samples += config_.layout.global_batch();
  if (action == StepAction::kUpdate) {
    const int64_t update = report.step - report.skipped_steps;
    report.learning_rate = LearningRate(config_.training, update);
    report.clip_factor = ClipFactor(verdict.gradient_norm, config_.training.clip_grad_norm);
    {
      PhaseScope scope(engine.timer, Phase::kOptimizer);
      engine.optimizer.Step(update, report.learning_rate, report.clip_factor / verdict.loss_scale);
    }
    MUSTER_RETURN_IF_ERROR(engine.GatherValues());
  }
  if (action == StepAction::kFallBack) MUSTER_RETURN_IF_ERROR(engine.FallBackToBf16());
  return report;
}

// ---- its parts ---------------------------------------------------------------------------------------------

// Counted targets of the global batch, known before the first backward: gradients are means from the start and never
// sums that a narrow type could overflow with. Only the head needs it.
absl::StatusOr<int64_t> RankTrainer::GlobalTargets() {
  RankEngine& engine = *engine_;
  if (!engine.stage.has_head()) return 0;
  double targets = static_cast<double>(batches_.counted_targets());
  if (engine.groups.data != nullptr) {
    PhaseScope scope(engine.timer, Phase::kCommExposed);
    MUSTER_RETURN_IF_ERROR(AllReduceSum(*engine.groups.data, {&targets, 1}));
  }
  return static_cast<int64_t>(targets);
}

// Reduces the gradients and agrees with all ranks on loss, norm and what was asked of any of them.
absl::StatusOr<StepVerdict> RankTrainer::Vote(double loss_sum) {
  RankEngine& engine = *engine_;
  StepBallot ballot{.stop = stop_requested_.load(std::memory_order_relaxed),
                    .checkpoint = checkpoint_requested_.exchange(false, std::memory_order_relaxed),
                    .save_done = saver_.done(),
                    .trace_steps = trace_requested_.exchange(0, std::memory_order_relaxed),
                    .loss_sum = loss_sum};
  if (engine.stage.counts_loss()) ballot.counted_targets = batches_.counted_targets();
  ballot.squares.resize(Parameters(config_.model).size());
  {
    PhaseScope scope(engine.timer, Phase::kCommExposed);
    MUSTER_RETURN_IF_ERROR(engine.reduction.Finish());
  }
  {
    PhaseScope scope(engine.timer, Phase::kOptimizer);
    engine.optimizer.SumSquares(ballot.squares);
  }
  PhaseScope scope(engine.timer, Phase::kCommExposed);
  return VoteOnStep(*parts_.world, ballot, policy_.loss_scale());
}

void RankTrainer::Tell(const StepDecision& decision) {
  if (parts_.observer == nullptr) return;
  const bool skipped = decision.action != StepAction::kUpdate;
  parts_.observer->OnEvent({.severity = EngineEvent::Severity::kWarning,
                            .type = decision.event,
                            .message = absl::StrCat(decision.reason, skipped ? "; its samples are skipped" : ""),
                            .details = {{"step", absl::StrCat(position_.steps_done + 1)}}});
}

// Rank 0 always reads data, and one rank's advice is enough: the fields are those of the whole job.
// REQUIRES: somebody listens.
void RankTrainer::AdviseOnDataWait(const StepReport& step) {
  if (config_.rank != 0) return;
  const double waited = step.phase_seconds[static_cast<size_t>(Phase::kDataWait)];
  const std::optional<std::string> advice = data_wait_.AddStep(waited, step.seconds);
  if (!advice.has_value()) return;
  parts_.observer->OnEvent({.severity = EngineEvent::Severity::kWarning,
                            .type = "DATA_WAIT",
                            .message = *advice,
                            .details = {{"step", absl::StrCat(step.step)}}});
}

bool RankTrainer::CheckpointDue(const StepVerdict& verdict) const {
  const CheckpointOptions& options = config_.checkpoint;
  if (options.directory.empty()) return false;
  if (verdict.stop || verdict.checkpoint || position_.steps_done == config_.training.steps) return true;
  return options.every_steps > 0 && position_.steps_done % options.every_steps == 0;
}

// Goes on with the checkpoint that is being saved and begins one that is due. Returns those that have ended, well or
// not: training goes on without one, but the last of a run must be there.
absl::StatusOr<std::vector<CheckpointSaver::Result>> RankTrainer::SaveCheckpoints(const StepVerdict& verdict) {
  PhaseScope scope(engine_->timer, Phase::kCheckpoint);
  std::vector<CheckpointSaver::Result> ended;
  if (saver_.busy() && verdict.saves_done) {
    if (std::optional<CheckpointSaver::Result> result = saver_.Advance()) ended.push_back(*std::move(result));
  }
  if (!CheckpointDue(verdict)) return ended;
  if (saver_.busy()) ended.push_back(saver_.Finish());
  position_.policy = policy_.state();
  saver_.Start(position_);
  const bool last = verdict.stop || position_.steps_done == config_.training.steps;
  if (last || !saver_.asynchronous()) ended.push_back(saver_.Finish());
  if (last) MUSTER_RETURN_IF_ERROR(ended.back().status);
  return ended;
}

void RankTrainer::Tell(const CheckpointSaver::Result& save) {
  if (parts_.observer == nullptr) return;
  if (save.status.ok()) {
    parts_.observer->OnCheckpoint(save.report);
    return;
  }
  parts_.observer->OnEvent(
      {.severity = EngineEvent::Severity::kError,
       .type = "CHECKPOINT_FAILED",
       .message = absl::StrCat("the checkpoint of step ", save.report.step, " was not written: ", save.status.message(),
                               "; training goes on, and the next one is tried when it is due"),
       .details = {{"step", absl::StrCat(save.report.step)}}});
}

bool RankTrainer::ValidationDue() const {
  const int64_t every = config_.validation.every_steps;
  if (every == 0) return false;
  return position_.steps_done == config_.training.steps || position_.steps_done % every == 0;
}

absl::Status RankTrainer::Validate() {
  if (validation_.micro_batches() == 0) return absl::OkStatus();
  RankEngine& engine = *engine_;
  const PhasePause pause(engine.timer);
  const TraceScope span(engine.recorder, TraceSpan::Category::kPhase, "validation");
  const absl::Duration begin = parts_.clock->SinceBoot();
  double sums[2] = {0, 0};  // of losses, of counted targets
  const auto forward = [&](Chunk& chunk, int64_t /*micro_batch*/, const MicroBatch& batch) -> absl::Status {
    MUSTER_RETURN_IF_ERROR(chunk.Forward(batch));
    if (!chunk.counts_loss()) return absl::OkStatus();
    sums[0] += chunk.LossSum(batch.slot);
    sums[1] += static_cast<double>(validation_.counted_targets());
    return absl::OkStatus();
  };
  MUSTER_RETURN_IF_ERROR(engine.pipeline.Evaluate(
      validation_.micro_batches(), [&](int64_t i) { return validation_.Read(i); }, forward));
  MUSTER_RETURN_IF_ERROR(AllReduceSum(*parts_.world, absl::MakeSpan(sums)));
  if (parts_.observer != nullptr) {
    parts_.observer->OnValidation({.step = position_.steps_done,
                                   .loss = sums[0] / sums[1],
                                   .perplexity = std::exp(sums[0] / sums[1]),
                                   .tokens = static_cast<int64_t>(sums[1]),
                                   .seconds = absl::ToDoubleSeconds(parts_.clock->SinceBoot() - begin)});
  }
  return absl::OkStatus();
}

absl::Status RankTrainer::ForEachWeight(const WeightVisitor& visit) const {
  for (const StageParameter& parameter : engine_->parameters) {
    for (const StateBlock& block : parameter.updated) {
      std::vector<float> values(static_cast<size_t>(block.master.elements()));
      engine_->device.CopyToHost(values.data(), block.master.data, block.master.bytes());
      MUSTER_RETURN_IF_ERROR(visit(parameter.info, block.box, values));
    }
  }
  return absl::OkStatus();
}

// ---- the beginning -----------------------------------------------------------------------------------------

absl::StatusOr<TrainingPosition> SetWeights(const EngineConfig& config, const TrainerParts& parts,
                                            const RankEngine& engine) {
  if (!config.checkpoint.resume_from.empty()) {
    return RestoreCheckpoint(config.checkpoint.resume_from, engine.device, engine.parameters);
  }
  const auto from_seed = [&](const ParameterInfo& parameter, int64_t first_element, absl::Span<float> values) {
    InitialWeights(config.model, config.training.seed, parameter, first_element, values);
    return absl::OkStatus();
  };
  if (parts.initial_weights) {
    MUSTER_RETURN_IF_ERROR(InitializeParameters(*engine.kernels, engine.parameters, parts.initial_weights));
  } else {
    MUSTER_RETURN_IF_ERROR(InitializeParameters(*engine.kernels, engine.parameters, from_seed));
  }
  return TrainingPosition{};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(const EngineConfig& config, const TrainerParts& parts) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<RankEngine> engine,
                          RankEngine::Build(config, *parts.world, *parts.clock, parts.device));
  if (!config.checkpoint.directory.empty()) {
    MUSTER_RETURN_IF_ERROR(ProveSharedDirectory(*parts.world, config.checkpoint));
  }
  absl::StatusOr<TrainingPosition> position = SetWeights(config, parts, *engine);
  // A rank that cannot read its part must not leave the others waiting in their first step.
  MUSTER_RETURN_IF_ERROR(ShareStatus(*parts.world, position.status()));
  const StepPolicy policy(config.policy, config.layout.precision, position->policy);
  MUSTER_RETURN_IF_ERROR(policy.fell_back() ? engine->FallBackToBf16() : engine->PublishWeights());
  if (parts.self_check != nullptr && config.checkpoint.resume_from.empty()) {
    MUSTER_RETURN_IF_ERROR(CheckLogits(*parts.world, *engine, *parts.self_check));
  }
  // The samples that a rewind passed over are not seen again, wherever the weights come from.
  if (config.checkpoint.next_sample > 0) position->consumed_samples = config.checkpoint.next_sample;

  const int64_t replica = engine->coordinate.data;
  MUSTER_ASSIGN_OR_RETURN(TrainingBatches batches,
                          TrainingBatches::Start(*parts.train, *parts.clock, config.layout, replica,
                                                 {.steps_done = position->steps_done,
                                                  .consumed_samples = position->consumed_samples,
                                                  .last_step = config.training.steps},
                                                 config.loader_threads, engine->memory));
  ValidationBatches validation(parts.validation, config.layout, replica, config.validation.windows, engine->memory);
  return std::make_unique<RankTrainer>(parts, std::move(engine), *std::move(position), policy, std::move(batches),
                                       validation);
}

}  // namespace muster
