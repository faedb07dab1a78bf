#include "server/job/progress.h"

#include <algorithm>
#include <cmath>

#include "common/rpc/proto_time.h"

namespace muster {
namespace {

void AddScaled(const v1::PhaseSeconds& from, double scale, v1::PhaseSeconds* to) {
  to->set_forward(to->forward() + scale * from.forward());
  to->set_backward(to->backward() + scale * from.backward());
  to->set_optimizer(to->optimizer() + scale * from.optimizer());
  to->set_comm_exposed(to->comm_exposed() + scale * from.comm_exposed());
  to->set_bubble(to->bubble() + scale * from.bubble());
  to->set_data_wait(to->data_wait() + scale * from.data_wait());
  to->set_checkpoint(to->checkpoint() + scale * from.checkpoint());
  to->set_validation(to->validation() + scale * from.validation());
  to->set_other(to->other() + scale * from.other());
}

v1::RankStatus* StatusOf(int64_t rank, v1::Job* job) {
  return rank >= 0 && rank < job->ranks_size() ? job->mutable_ranks(static_cast<int>(rank)) : nullptr;
}

const char* PhaseName(v1::RankPhase phase) {
  switch (phase) {
    case v1::RANK_JOINING:
      return "joining";
    case v1::RANK_TRAINING:
      return "training";
    case v1::RANK_EXITED:
      return "exited";
    default:
      return "starting";
  }
}

}  // namespace

void ProgressTracker::BeginAttempt(v1::Job* job) {
  const int64_t counted = counted_step_;
  *this = ProgressTracker();
  CountedUpTo(counted);
  job->clear_ranks();
  for (const v1::RankPlacement& placement : job->placements()) {
    v1::RankStatus* status = job->add_ranks();
    status->set_rank(placement.rank());
    status->set_worker(placement.worker());
    status->set_device(placement.device());
    status->set_state("starting");
    status->set_limit_bytes(job->resolved_spec().resources().memory_per_rank_bytes());
  }
}

void ProgressTracker::OnStarted(int64_t rank, const v1::RankStarted& report, v1::Job* job) {
  v1::RankStatus* status = StatusOf(rank, job);
  if (status == nullptr) return;
  *status->mutable_planned() = report.planned();
  *status->mutable_used() = report.used();
  status->set_arena_bytes(report.arena_bytes());
  status->set_step(report.resumed_step());
}

bool ProgressTracker::OnStep(int64_t rank, const v1::StepReport& report, absl::Time now, v1::Job* job) {
  if (v1::RankStatus* status = StatusOf(rank, job); status != nullptr) {
    status->set_step(report.step());
    status->set_state("training");
    // The report counts the global batch, of which a replica takes its share.
    const int64_t replicas = std::max<int64_t>(1, job->resolved_spec().parallelism().data());
    status->set_tokens(status->tokens() + report.tokens() / replicas);
    AddScaled(report.phases(), 1.0, status->mutable_phases());
  }
  newest_phases_[rank] = report.phases();
  v1::JobProgress* progress = job->mutable_progress();
  progress->clear_phases();
  for (const auto& phases : newest_phases_) {
    AddScaled(phases.second, 1.0 / static_cast<double>(newest_phases_.size()), progress->mutable_phases());
  }
  step_seconds_ = report.seconds();
  const bool first = !any_step_;
  if (first) {
    any_step_ = true;
    first_step_ = report.step();
    first_step_began_ = now - absl::Seconds(report.seconds());
  }
  furthest_step_ = std::max(furthest_step_, report.step());
  if (!report.leader()) return first;

  // Steps may be left out of the reports; each of them had about this many tokens. Those repeated after a recovery were
  // counted when they were done first.
  progress->set_tokens(progress->tokens() + report.tokens() * std::max<int64_t>(0, report.step() - counted_step_));
  counted_step_ = std::max(counted_step_, report.step());
  progress->set_step(report.step());
  progress->set_steps(job->resolved_spec().training().steps());
  // A skipped step may have no finite ones: the newest that have stay.
  if (std::isfinite(report.loss())) progress->set_loss(report.loss());
  if (std::isfinite(report.gradient_norm())) progress->set_gradient_norm(report.gradient_norm());
  progress->set_skipped_steps(report.skipped_steps());
  progress->set_learning_rate(report.learning_rate());
  attempt_tokens_ = report.tokens() * (report.step() - first_step_ + 1);
  const double elapsed = absl::ToDoubleSeconds(now - first_step_began_);
  if (elapsed > 0 && attempt_tokens_ > 0) {
    progress->set_tokens_per_second(static_cast<double>(attempt_tokens_) / elapsed);
    const double seconds_per_step = elapsed / static_cast<double>(report.step() - first_step_ + 1);
    const auto left = static_cast<double>(std::max<int64_t>(0, progress->steps() - report.step()));
    *progress->mutable_remaining() = ToProto(absl::Seconds(left * seconds_per_step));
  }
  return first;
}

bool ProgressTracker::OnValidation(const v1::ValidationReport& report, v1::Job* job) {
  if (std::isnan(report.loss())) return false;  // a rank that does not know it
  v1::JobProgress* progress = job->mutable_progress();
  for (const v1::ValidationPoint& point : progress->validations()) {
    if (point.step() == report.step()) return false;
  }
  v1::ValidationPoint* point = progress->add_validations();
  point->set_step(report.step());
  point->set_loss(report.loss());
  point->set_tokens(report.tokens());
  point->set_perplexity(report.perplexity());
  if (progress->validations_size() == 1) progress->set_first_validation_loss(report.loss());
  progress->set_validation_loss(report.loss());
  progress->set_validation_perplexity(report.perplexity());
  progress->set_validation_step(report.step());
  return true;
}

bool ProgressTracker::OnObserved(const v1::ObservedRank& rank, v1::Job* job) {
  v1::RankStatus* status = StatusOf(rank.rank(), job);
  if (status == nullptr) return false;
  const int64_t resident = rank.resident_bytes() > 0 ? rank.resident_bytes() : status->resident_bytes();
  const bool same =
      status->pid() == rank.pid() && status->state() == PhaseName(rank.phase()) && status->resident_bytes() == resident;
  status->set_pid(rank.pid());
  status->set_state(PhaseName(rank.phase()));
  status->set_resident_bytes(resident);
  status->set_limit_bytes(rank.memory_limit_bytes());
  return !same;
}

}  // namespace muster
