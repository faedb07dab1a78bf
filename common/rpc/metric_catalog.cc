#include "common/rpc/metric_catalog.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"

namespace muster {
namespace {

const std::vector<MetricInfo>& Catalog() {
  constexpr MetricKind kGauge = MetricKind::kGauge;
  constexpr MetricKind kCounter = MetricKind::kCounter;
  static const auto* const catalog = new std::vector<MetricInfo>{
      {"muster_job_step", kGauge, "steps", "muster-worker", {"job_id", "job_name"}, "Optimizer steps done."},
      {"muster_job_loss",
       kGauge,
       "nats per token",
       "muster-worker",
       {"job_id", "job_name"},
       "Loss of the newest step."},
      {"muster_job_validation_loss",
       kGauge,
       "nats per token",
       "muster-worker",
       {"job_id", "job_name"},
       "Loss of the newest validation."},
      {"muster_job_tokens_per_second",
       kGauge,
       "tokens per second",
       "muster-worker",
       {"job_id", "job_name"},
       "Tokens over wall time since the attempt's first step, checkpoints and validation included."},
      {"muster_job_gradient_norm",
       kGauge,
       "",
       "muster-worker",
       {"job_id", "job_name"},
       "Global gradient norm of the newest step, before clipping."},
      {"muster_job_learning_rate",
       kGauge,
       "",
       "muster-worker",
       {"job_id", "job_name"},
       "Learning rate of the newest step."},
      {"muster_job_attempts_total",
       kCounter,
       "attempts",
       "muster-worker",
       {"job_id", "job_name"},
       "Placements of the whole gang; above 1, something was recovered from."},
      {"muster_rank_memory_bytes",
       kGauge,
       "bytes",
       "muster-worker",
       {"job_id", "rank", "category", "kind"},
       "Sizes of the rank's tensors by category; kind is planned or used, and the two are equal. Tensors that are "
       "never live together share memory, so the sum may be more than the arena."},
      {"muster_rank_memory_limit_bytes",
       kGauge,
       "bytes",
       "muster-worker",
       {"job_id", "rank"},
       "What the rank's slot allows."},
      {"muster_rank_process_resident_bytes",
       kGauge,
       "bytes",
       "muster-worker",
       {"job_id", "rank"},
       "Memory of the rank's process that is resident now; 0 when it has ended."},
      {"muster_rank_phase_seconds_total",
       kCounter,
       "seconds",
       "muster-worker",
       {"job_id", "rank", "phase"},
       "Wall time by phase: forward, backward, optimizer, comm_exposed, bubble, data_wait, checkpoint, validation, "
       "other. The phases add up to wall time."},
      {"muster_rank_steps_total",
       kCounter,
       "steps",
       "muster-worker",
       {"job_id", "rank"},
       "Optimizer steps of the rank."},
      {"muster_rank_tokens_total",
       kCounter,
       "tokens",
       "muster-worker",
       {"job_id", "rank"},
       "Tokens that the rank's stage processed. Ranks of one replica process the same tokens."},
      {"muster_worker_devices",
       kGauge,
       "devices",
       "muster-worker",
       {"state"},
       "Devices by state: free, busy, unhealthy."},
      {"muster_build_info", kGauge, "", "muster-worker", {"version"}, "1, with the program's version as a label."},
      {"muster_jobs", kGauge, "jobs", "musterd", {"state"}, "Jobs by state."},
      {"muster_workers", kGauge, "workers", "musterd", {"state"}, "Workers by state."},
      {"muster_devices",
       kGauge,
       "devices",
       "musterd",
       {"state"},
       "Devices of all workers by state: free, busy, unavailable (unhealthy, cordoned or out of reach)."},
      {"muster_coordinator_info", kGauge, "", "musterd", {"version"}, "1, with the program's version as a label."},
      {"muster_restarts_total", kCounter, "restarts", "musterd", {"cause"}, "Recoveries of all jobs by their cause."},
      {"muster_store_commits_total", kCounter, "transactions", "musterd", {}, "Transactions of the state's database."},
      {"muster_store_commit_seconds_total",
       kCounter,
       "seconds",
       "musterd",
       {},
       "Time that these transactions took, waiting for the disk included."},
  };
  return *catalog;
}

}  // namespace

absl::Span<const MetricInfo> MetricCatalog() { return Catalog(); }

const MetricInfo& MetricOf(const char* name) {
  for (const MetricInfo& metric : Catalog()) {
    if (std::strcmp(metric.name, name) == 0) return metric;
  }
  MUSTER_CHECK(false, "no metric ", name);
  return Catalog().front();
}

std::string MetricDocumentation() {
  std::string text = R"(# Metrics

`musterd` and `muster-worker` serve these at `/metrics`, for Prometheus. The exporters register them from
`common/rpc/metric_catalog.cc`, and this page is written from it. The series of a job are there until two minutes after it ended, so that its
last values are scraped. `deploy/grafana/job.json` draws them.

| metric | kind | unit | labels | at | meaning |
|---|---|---|---|---|---|
)";
  for (const MetricInfo& metric : Catalog()) {
    absl::StrAppend(&text, "| `", metric.name, "` | ", metric.kind == MetricKind::kCounter ? "counter" : "gauge", " | ",
                    metric.unit, " | ",
                    metric.labels.empty() ? "" : absl::StrCat("`", absl::StrJoin(metric.labels, "`, `"), "`"), " | ",
                    metric.exporter, " | ", metric.help, " |\n");
  }
  return text;
}

}  // namespace muster
