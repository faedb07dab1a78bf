// muster metrics export, muster compare
#include <cstdio>
#include <set>

#include "absl/strings/str_cat.h"
#include "client/compare_view.h"
#include "client/metrics_csv.h"
#include "client/output.h"
#include "client/tensorboard_writer.h"
#include "client/verbs.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr int32_t kAllPoints = 1'000'000;
constexpr size_t kComparedSteps = 12;

// Series by series: all of a long run would be more than one message holds.
absl::StatusOr<v1::QueryMetricsResponse> AllMetrics(Session& session, const std::string& job) {
  v1::QueryMetricsRequest request;
  request.set_job(job);
  request.set_max_points(1);
  MUSTER_ASSIGN_OR_RETURN(const v1::QueryMetricsResponse names,
                          session.Call(session.jobs(), &v1::JobService::Stub::QueryMetrics, request));
  request.set_max_points(kAllPoints);
  v1::QueryMetricsResponse all;
  all.set_stride(names.stride());
  std::set<std::string> asked;
  for (const v1::MetricSeries& series : names.series()) {
    if (!asked.insert(series.name()).second) continue;
    request.clear_names();
    request.add_names(series.name());
    MUSTER_ASSIGN_OR_RETURN(v1::QueryMetricsResponse part,
                            session.Call(session.jobs(), &v1::JobService::Stub::QueryMetrics, request));
    for (v1::MetricSeries& each : *part.mutable_series()) *all.add_series() = std::move(each);
  }
  return all;
}

absl::StatusOr<v1::Job> GetJob(Session& session, const std::string& name) {
  v1::GetJobRequest request;
  request.set_job(name);
  return session.Call(session.jobs(), &v1::JobService::Stub::GetJob, request);
}

absl::StatusOr<Run> ReadRun(Session& session, const std::string& name) {
  Run run;
  MUSTER_ASSIGN_OR_RETURN(run.job, GetJob(session, name));
  MUSTER_ASSIGN_OR_RETURN(run.metrics, AllMetrics(session, run.job.id()));
  return run;
}

}  // namespace

absl::StatusOr<ExitCode> RunVerb(Session& session, const MetricsExportOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const Run run, ReadRun(session, options.job));
  if (run.metrics.series().empty()) {
    return absl::FailedPreconditionError(absl::StrCat(run.job.id(), " has done no step yet: there are no metrics"));
  }
  std::string path = options.path;
  std::string text;
  if (options.format == "csv") {
    text = MetricsCsv(run.metrics);
  } else {
    // TensorBoard takes a folder for a run, and in it files of such names.
    MUSTER_RETURN_IF_ERROR(MakeDirectories(options.path));
    absl::StrAppend(&path, "/events.out.tfevents.", run.job.submitted_at().seconds(), ".", run.job.id());
    text = TensorBoardFile(run.metrics);
  }
  MUSTER_RETURN_IF_ERROR(WriteFileDurably(path, text));
  const int64_t stride = run.metrics.stride();
  const std::string kept = stride > 1 ? absl::StrCat("every ", stride, " steps: of a run this long no more are kept")
                                      : std::string("every step");
  // Of a query, less than all would be a surprise: what was written is said in every format.
  v1::QueryMetricsResponse about;
  about.set_stride(stride);
  PrintResource(session.options(), about, absl::StrCat(path, ": ", run.metrics.series_size(), " series, ", kept, "\n"));
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunVerb(Session& session, const CompareOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const Run left, ReadRun(session, options.left));
  MUSTER_ASSIGN_OR_RETURN(const Run right, ReadRun(session, options.right));
  const Comparison comparison = Compare(left, right, kComparedSteps);
  const OutputFormat format = session.options().output;
  const std::string text = format == OutputFormat::kTable  ? CompareText(comparison)
                           : format == OutputFormat::kJson ? CompareJson(comparison)
                                                           : CompareYaml(comparison);
  std::fputs(text.c_str(), stdout);
  return ExitCode::kOk;
}

}  // namespace muster
