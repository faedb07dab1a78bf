#include "worker/agent/exporter.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// Calls visit(name, value) for every field of a message of numbers, by the schema's own names.
template <typename Visit>
void ForEachNumber(const google::protobuf::Message& message, Visit visit) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = type.field(i);
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE) {
      visit(field->name(), reflection.GetDouble(message, field));
    } else if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_INT64) {
      visit(field->name(), static_cast<double>(reflection.GetInt64(message, field)));
    }
  }
}

}  // namespace

struct Exporter::Job {
  Job(const MetricFamilies* families, const v1::Assignment& assignment)
      : series(families, {{"job_id", assignment.job_id()}, {"job_name", assignment.resolved_spec().name()}}) {}

  SeriesSet series;
  std::map<int64_t, std::unique_ptr<SeriesSet>> ranks;
  std::set<int64_t> living;
  EventLoop::TimerId removal = 0;  // 0: none

  // Of the newest attempt.
  int64_t attempt = 0;
  int64_t first_step = 0;           // the first that it reported; 0: none yet
  absl::Duration first_step_ended;  // since boot
  int64_t tokens = 0;               // of the steps after the first
};

Exporter::Exporter(EventLoop* loop, const Clock* clock, absl::Duration retention, const std::string& version)
    : loop_(loop),
      clock_(clock),
      retention_(retention),
      registry_(std::make_shared<prometheus::Registry>()),
      families_(registry_.get()),
      worker_(&families_, {}) {
  worker_.Set("muster_build_info", 1, {{"version", version}});
}

Exporter::~Exporter() {
  for (const auto& [id, job] : jobs_) {
    if (job->removal != 0) loop_->CancelTimer(job->removal);
  }
}

void Exporter::OnRankStarted(const v1::Assignment& assignment, int64_t memory_limit_bytes) {
  std::unique_ptr<Job>& job = jobs_[assignment.job_id()];
  if (job == nullptr) job = std::make_unique<Job>(&families_, assignment);
  if (job->removal != 0) loop_->CancelTimer(std::exchange(job->removal, 0));
  if (assignment.attempt() != job->attempt) {
    job->attempt = assignment.attempt();
    job->first_step = 0;
    job->tokens = 0;
    job->living.clear();  // the end of an older attempt's rank is not waited for
  }
  job->living.insert(assignment.rank());
  std::unique_ptr<SeriesSet>& rank = job->ranks[assignment.rank()];
  if (rank == nullptr) {
    rank = std::make_unique<SeriesSet>(
        &families_, SeriesSet::Labels{{"job_id", assignment.job_id()}, {"rank", absl::StrCat(assignment.rank())}});
  }
  rank->Set("muster_rank_memory_limit_bytes", static_cast<double>(memory_limit_bytes));
}

void Exporter::OnReport(const v1::Assignment& assignment, const v1::RankReport& report) {
  const auto found = jobs_.find(assignment.job_id());
  if (found == jobs_.end() || found->second->attempt != assignment.attempt()) return;
  Job& job = *found->second;
  const auto rank = job.ranks.find(assignment.rank());
  if (rank == job.ranks.end()) return;
  switch (report.report_case()) {
    case v1::RankReport::kStarted:
      OnStarted(*rank->second, report.started());
      break;
    case v1::RankReport::kStep:
      OnStep(job, *rank->second, assignment, report.step());
      break;
    case v1::RankReport::kValidation:
      rank->second->Add("muster_rank_phase_seconds_total", report.validation().seconds(), {{"phase", "validation"}});
      job.series.Set("muster_job_validation_loss", report.validation().loss());
      break;
    default:
      break;
  }
}

void Exporter::OnStarted(SeriesSet& rank, const v1::RankStarted& started) {
  const auto set = [&](const v1::MemoryByCategory& memory, const std::string& kind) {
    ForEachNumber(memory, [&](const std::string& category, double bytes) {
      rank.Set("muster_rank_memory_bytes", bytes, {{"category", category}, {"kind", kind}});
    });
  };
  set(started.planned(), "planned");
  set(started.used(), "used");
}

void Exporter::OnStep(Job& job, SeriesSet& rank, const v1::Assignment& assignment, const v1::StepReport& step) {
  const int64_t replicas = std::max<int64_t>(1, assignment.resolved_spec().parallelism().data());
  rank.Add("muster_rank_steps_total", 1);
  rank.Add("muster_rank_tokens_total", static_cast<double>(step.tokens()) / static_cast<double>(replicas));
  ForEachNumber(step.phases(), [&](const std::string& phase, double seconds) {
    if (seconds >= 0) rank.Add("muster_rank_phase_seconds_total", seconds, {{"phase", phase}});
  });
  if (step.leader()) OnLeaderStep(job, step);
}

void Exporter::OnLeaderStep(Job& job, const v1::StepReport& step) {
  SeriesSet& series = job.series;
  series.RaiseTo("muster_job_attempts_total", static_cast<double>(job.attempt));
  series.Set("muster_job_step", static_cast<double>(step.step()));
  if (!std::isnan(step.loss())) series.Set("muster_job_loss", step.loss());
  series.Set("muster_job_gradient_norm", step.gradient_norm());
  series.Set("muster_job_learning_rate", step.learning_rate());
  const absl::Duration now = clock_->SinceBoot();
  if (job.first_step == 0) {
    job.first_step = step.step();
    job.first_step_ended = now;
    if (step.seconds() > 0) {
      series.Set("muster_job_tokens_per_second", static_cast<double>(step.tokens()) / step.seconds());
    }
    return;
  }
  job.tokens += step.tokens();
  const double seconds = absl::ToDoubleSeconds(now - job.first_step_ended);
  if (seconds > 0) series.Set("muster_job_tokens_per_second", static_cast<double>(job.tokens) / seconds);
}

void Exporter::OnResident(const RankKey& rank, int64_t bytes) {
  const auto job = jobs_.find(rank.job_id);
  if (job == jobs_.end()) return;
  const auto series = job->second->ranks.find(rank.rank);
  if (series == job->second->ranks.end()) return;
  series->second->Set("muster_rank_process_resident_bytes", static_cast<double>(bytes));
}

void Exporter::OnRankEnded(const RankKey& rank) {
  const auto found = jobs_.find(rank.job_id);
  if (found == jobs_.end() || found->second->attempt != rank.attempt) return;
  Job& job = *found->second;
  if (job.living.erase(rank.rank) == 0) return;
  // Its other series stay for the last scrapes; its memory is free.
  job.ranks.at(rank.rank)->Set("muster_rank_process_resident_bytes", 0);
  if (!job.living.empty()) return;
  job.removal = loop_->After(retention_, [this, id = rank.job_id] { jobs_.erase(id); });
}

void Exporter::OnDevices(int64_t free, int64_t busy, int64_t unhealthy) {
  worker_.Set("muster_worker_devices", static_cast<double>(free), {{"state", "free"}});
  worker_.Set("muster_worker_devices", static_cast<double>(busy), {{"state", "busy"}});
  worker_.Set("muster_worker_devices", static_cast<double>(unhealthy), {{"state", "unhealthy"}});
}

std::string Exporter::Text() const { return prometheus::TextSerializer().Serialize(registry_->Collect()); }

}  // namespace muster
