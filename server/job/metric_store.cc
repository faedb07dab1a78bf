#include "server/job/metric_store.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/rpc/grpc_status.h"

namespace muster {
namespace {

constexpr absl::Duration kWriteInterval = absl::Seconds(2);
constexpr size_t kDefaultPoints = 1000;
constexpr char kValidationLoss[] = "muster_job_validation_loss";
constexpr char kValidationPerplexity[] = "muster_job_validation_perplexity";

std::string Prefix(int64_t number) { return absl::StrFormat("metrics/%012d/", number); }
std::string ChunkKey(int64_t number, size_t chunk) { return absl::StrFormat("%s%06d", Prefix(number), chunk); }

absl::Status CheckNames(const v1::QueryMetricsRequest& request) {
  std::set<std::string> known = {kValidationLoss, kValidationPerplexity};
  for (const MetricColumn& column : MetricColumns()) known.insert(column.name);
  for (const std::string& name : request.names()) {
    if (known.count(name) > 0) continue;
    google::rpc::BadRequest::FieldViolation violation;
    violation.set_field("names");
    violation.set_description(
        absl::StrCat("\"", name, "\" is no metric of a job's steps; there are ", absl::StrJoin(known, ", ")));
    return BadRequestError({violation});
  }
  return absl::OkStatus();
}

void AddValidations(const v1::Job& job, const v1::QueryMetricsRequest& request, v1::QueryMetricsResponse* response) {
  for (const char* name : {kValidationLoss, kValidationPerplexity}) {
    if (!request.names().empty() &&
        std::find(request.names().begin(), request.names().end(), name) == request.names().end()) {
      continue;
    }
    v1::MetricSeries series;
    series.set_name(name);
    if (name == kValidationLoss) series.set_unit("nats per token");
    for (const v1::ValidationPoint& validation : job.progress().validations()) {
      const bool inside = validation.step() >= request.from_step() &&
                          (request.to_step() == 0 || validation.step() <= request.to_step());
      if (!inside) continue;
      v1::MetricPoint* point = series.add_points();
      point->set_step(validation.step());
      point->set_value(name == kValidationLoss ? validation.loss() : std::exp(validation.loss()));
    }
    if (!series.points().empty()) *response->add_series() = std::move(series);
  }
}

}  // namespace

absl::StatusOr<MetricStore::Held*> MetricStore::HistoryOf(const JobEntry& entry) {
  const int64_t number = entry.record.number();
  const auto known = histories_.find(number);
  if (known != histories_.end()) return known->second.get();
  auto held = std::make_unique<Held>();
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Record> records, store_->Scan(Prefix(number)));
  for (const Record& record : records) {
    server::MetricChunk chunk;
    if (!chunk.ParseFromString(record.value)) {
      return absl::DataLossError(absl::StrCat("the record ", record.key, " in the state directory cannot be read"));
    }
    held->history.Restore(chunk);
  }
  held->stored_chunks = records.size();
  return (histories_[number] = std::move(held)).get();
}

void MetricStore::OnReport(const v1::RankReport& report) {
  if (!report.has_step() || !report.step().leader()) return;
  const JobEntry* entry = table_->Find(report.job_id());
  const absl::StatusOr<Held*> held = HistoryOf(*entry);
  if (!held.ok()) return;  // who asks for it is told
  (*held)->history.Add(entry->record.job(), report.step().seconds(), report.step().tokens(),
                       absl::ToUnixMicros(clock_->Now()));
}

absl::StatusOr<v1::QueryMetricsResponse> MetricStore::Query(const v1::QueryMetricsRequest& request) {
  MUSTER_ASSIGN_OR_RETURN(const JobEntry* const entry, manager_->Find(request.job()));
  MUSTER_RETURN_IF_ERROR(CheckNames(request));
  MUSTER_ASSIGN_OR_RETURN(Held* const held, HistoryOf(*entry));
  const size_t points = request.max_points() > 0 ? static_cast<size_t>(request.max_points()) : kDefaultPoints;
  v1::QueryMetricsResponse response;
  held->history.Read(request, points, &response);
  AddValidations(table_->View(*entry), request, &response);
  return response;
}

void MetricStore::Tick() {
  const absl::Duration now = clock_->SinceBoot();
  const bool due = now >= next_write_;
  if (due) next_write_ = now + kWriteInterval;
  for (auto item = histories_.begin(); item != histories_.end();) {
    const bool ended = IsFinal(table_->jobs().at(item->first)->committed.state());
    const bool wrote = (due || ended) && Write(item->first, *item->second);
    // Not before the next round: a commit takes a moment until it can be read again.
    item = due && ended && !wrote ? histories_.erase(item) : std::next(item);
  }
}

bool MetricStore::Write(int64_t number, Held& held) {
  Batch batch;
  for (const size_t chunk : held.history.TakeChanged()) {
    batch.puts.push_back({ChunkKey(number, chunk), held.history.Chunk(chunk).SerializeAsString()});
  }
  for (size_t chunk = held.history.chunks(); chunk < held.stored_chunks; ++chunk) {
    batch.deletes.push_back(ChunkKey(number, chunk));
  }
  held.stored_chunks = held.history.chunks();
  if (batch.puts.empty() && batch.deletes.empty()) return false;
  store_->Commit(std::move(batch), [](absl::Status) {});  // the job's own next commit fails like this one, and is heard
  return true;
}

}  // namespace muster
