#include "worker/rank/report_observer.h"

#include <array>
#include <cstdio>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/rpc/proto_time.h"

namespace muster {
namespace {

// Of one message: about a quarter of what gRPC takes.
constexpr int kSpansOfPart = 10'000;

double Of(const PhaseSeconds& seconds, Phase phase) { return seconds[static_cast<size_t>(phase)]; }

v1::PhaseSeconds ToProto(const PhaseSeconds& seconds) {
  v1::PhaseSeconds phases;
  phases.set_forward(Of(seconds, Phase::kForward));
  phases.set_backward(Of(seconds, Phase::kBackward));
  phases.set_optimizer(Of(seconds, Phase::kOptimizer));
  phases.set_comm_exposed(Of(seconds, Phase::kCommExposed));
  phases.set_bubble(Of(seconds, Phase::kBubble));
  phases.set_data_wait(Of(seconds, Phase::kDataWait));
  phases.set_checkpoint(Of(seconds, Phase::kCheckpoint));
  phases.set_other(Of(seconds, Phase::kOther));
  return phases;
}

v1::EventSeverity ToProto(EngineEvent::Severity severity) {
  switch (severity) {
    case EngineEvent::Severity::kInfo:
      return v1::INFO;
    case EngineEvent::Severity::kWarning:
      return v1::WARNING;
    case EngineEvent::Severity::kError:
      return v1::ERROR;
  }
  return v1::EVENT_SEVERITY_UNSPECIFIED;
}

v1::MemoryByCategory ToProto(const std::array<int64_t, kMemoryCategories>& bytes) {
  const auto of = [&](MemoryCategory category) { return bytes[static_cast<size_t>(category)]; };
  v1::MemoryByCategory memory;
  memory.set_parameters(of(MemoryCategory::kParameters));
  memory.set_gradients(of(MemoryCategory::kGradients));
  memory.set_optimizer_state(of(MemoryCategory::kOptimizerState));
  memory.set_activations(of(MemoryCategory::kActivations));
  memory.set_logits(of(MemoryCategory::kLogits));
  memory.set_communication(of(MemoryCategory::kCommunication));
  memory.set_workspace(of(MemoryCategory::kWorkspace));
  memory.set_staging(of(MemoryCategory::kStaging));
  return memory;
}

}  // namespace

void ReportObserver::OnStep(const StepReport& report) {
  seconds_since_line_ += report.seconds;
  if (leader_ && seconds_since_line_ >= 1) {
    seconds_since_line_ = 0;
    std::printf("step %lld  loss %.6f  gradient norm %.4f  learning rate %.3g  %.0f ms\n",
                static_cast<long long>(report.step), report.loss, report.gradient_norm, report.learning_rate,
                report.seconds * 1000);
    std::fflush(stdout);
  }
  v1::RankReport message;
  v1::StepReport& step = *message.mutable_step();
  step.set_step(report.step);
  step.set_loss(report.loss);
  step.set_tokens(report.tokens);
  step.set_gradient_norm(report.gradient_norm);
  step.set_clip_factor(report.clip_factor);
  step.set_learning_rate(report.learning_rate);
  step.set_loss_scale(report.loss_scale);
  step.set_skipped(report.skipped);
  step.set_skipped_steps(report.skipped_steps);
  step.set_seconds(report.seconds);
  *step.mutable_phases() = ToProto(report.phase_seconds);
  step.set_leader(leader_);
  send_(std::move(message));
}

void ReportObserver::OnValidation(const ValidationReport& report) {
  if (leader_) {
    std::printf("validation after step %lld  loss %.6f  perplexity %.4g\n", static_cast<long long>(report.step),
                report.loss, report.perplexity);
    std::fflush(stdout);
  }
  v1::RankReport message;
  v1::ValidationReport& validation = *message.mutable_validation();
  validation.set_step(report.step);
  validation.set_loss(report.loss);
  validation.set_perplexity(report.perplexity);
  validation.set_tokens(report.tokens);
  validation.set_seconds(report.seconds);
  send_(std::move(message));
}

void ReportObserver::OnCheckpoint(const CheckpointReport& report) {
  if (rank_ != 0) return;  // it is one checkpoint, complete on every rank or on none
  v1::RankReport message;
  v1::Checkpoint& checkpoint = *message.mutable_checkpoint();
  absl::string_view path = report.directory;
  if (absl::ConsumePrefix(&path, checkpoint_root_)) absl::ConsumePrefix(&path, "/");
  checkpoint.set_step(report.step);
  checkpoint.set_attempt(attempt_);
  checkpoint.set_path(std::string(path));
  checkpoint.set_bytes(report.bytes);
  checkpoint.set_consumed_samples(report.consumed_samples);
  checkpoint.set_seconds(report.seconds);
  *checkpoint.mutable_written_at() = ToProto(absl::Now());
  std::printf("checkpoint of step %lld in %s, %.3f s\n", static_cast<long long>(report.step), report.directory.c_str(),
              report.seconds);
  std::fflush(stdout);
  send_(std::move(message));
}

void ReportObserver::OnEvent(const EngineEvent& engine_event) {
  if (rank_ != 0 && !engine_event.of_this_rank) return;
  std::printf("%s\n", engine_event.message.c_str());
  std::fflush(stdout);
  v1::RankReport message;
  v1::Event& event = *message.mutable_event();
  event.set_severity(ToProto(engine_event.severity));
  event.set_type(engine_event.type);
  event.set_message(engine_event.message);
  event.set_rank(engine_event.of_this_rank ? rank_ : -1);
  for (const auto& [name, value] : engine_event.details) (*event.mutable_details())[name] = value;
  send_(std::move(message));
}

void ReportObserver::OnTrace(const TraceReport& report) {
  std::printf("recorded the timeline of steps %lld to %lld\n", static_cast<long long>(report.first_step),
              static_cast<long long>(report.first_step + report.steps - 1));
  std::fflush(stdout);
  v1::RankReport message;
  const auto send_part = [&](bool done) {
    v1::TraceReport& part = *message.mutable_trace();
    part.set_first_step(report.first_step);
    part.set_steps(report.steps);
    part.set_done(done);
    if (done) part.set_dropped_spans(report.dropped_spans);
    send_(std::move(message));
    message = v1::RankReport();
  };
  for (const TraceSpan& recorded : report.spans) {
    v1::TraceSpan& span = *message.mutable_trace()->add_spans();
    span.set_name(recorded.name);
    span.set_category(TraceCategoryName(recorded.category));
    span.set_begin_nanos(absl::ToInt64Nanoseconds(report.wall_offset + recorded.begin));
    span.set_duration_nanos(absl::ToInt64Nanoseconds(recorded.end - recorded.begin));
    span.set_step(recorded.step);
    span.set_micro_batch(recorded.micro_batch);
    if (message.trace().spans_size() == kSpansOfPart) send_part(false);
  }
  send_part(true);
}

void SetMemory(const MemoryReport& memory, v1::RankStarted& started) {
  *started.mutable_planned() = ToProto(memory.planned_bytes);
  *started.mutable_used() = ToProto(memory.used_bytes);
  started.set_planned_arena_bytes(memory.planned_arena_bytes);
  started.set_arena_bytes(memory.arena_bytes);
}

}  // namespace muster
