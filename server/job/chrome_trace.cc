#include "server/job/chrome_trace.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

// "rank 3: data 1, pipeline 1 on worker-0"
std::string NameOf(const v1::Job& job, const v1::RankPlacement& placement) {
  const v1::ParallelismSpec& layout = job.resolved_spec().parallelism();
  const int64_t tensor = std::max<int64_t>(layout.tensor(), 1);
  const int64_t data = std::max<int64_t>(layout.data(), 1);
  // rank = tp + tensor x (dp + data x pp)
  return absl::StrCat("rank ", placement.rank(), ": tensor ", placement.rank() % tensor, ", data ",
                      placement.rank() / tensor % data, ", pipeline ", placement.rank() / (tensor * data), " on ",
                      placement.worker());
}

Json Metadata(const char* name, int64_t rank, const Json& arguments) {
  return {{"name", name}, {"ph", "M"}, {"pid", rank}, {"tid", 0}, {"args", arguments}};
}

// Exact: a double would round nanoseconds away.
std::string Microseconds(int64_t nanos) {
  const char* sign = nanos < 0 ? "-" : "";
  const int64_t size = nanos < 0 ? -nanos : nanos;
  return absl::StrFormat("%s%d.%03d", sign, size / 1000, size % 1000);
}

}  // namespace

std::string ChromeTraceHead(const v1::Job& job, int64_t origin_nanos) {
  const Json about = {{"job", job.id()},
                      {"name", job.spec().name()},
                      {"attempt", job.attempt()},
                      {"origin_unix_nanos", absl::StrCat(origin_nanos)},
                      {"clock", "ranks of several hosts are aligned by the hosts' wall clocks"}};
  std::string head = absl::StrCat("{\"displayTimeUnit\":\"ms\",\"otherData\":", about.dump(), ",\"traceEvents\":[\n");
  const char* comma = "";
  for (const v1::RankPlacement& placement : job.placements()) {
    const int64_t rank = placement.rank();
    absl::StrAppend(&head, comma, Metadata("process_name", rank, {{"name", NameOf(job, placement)}}).dump(), ",\n",
                    Metadata("process_sort_index", rank, {{"sort_index", rank}}).dump(), ",\n",
                    Metadata("thread_name", rank, {{"name", "training"}}).dump());
    comma = ",\n";
  }
  return head;
}

std::string ChromeTraceEvents(int64_t rank, const v1::TraceReport& report, int64_t origin_nanos) {
  std::string events;
  for (const v1::TraceSpan& span : report.spans()) {
    Json arguments = {{"step", span.step()}};
    if (span.micro_batch() >= 0) arguments["micro_batch"] = span.micro_batch();
    const std::string name = span.category() == "step" ? absl::StrCat("step ", span.step()) : span.name();
    absl::StrAppend(&events, ",\n{\"name\":", Json(name).dump(), ",\"cat\":", Json(span.category()).dump(),
                    ",\"ph\":\"X\",\"ts\":", Microseconds(span.begin_nanos() - origin_nanos),
                    ",\"dur\":", Microseconds(span.duration_nanos()), ",\"pid\":", rank,
                    ",\"tid\":0,\"args\":", arguments.dump(), "}");
  }
  return events;
}

std::string ChromeTraceTail() { return "\n]}\n"; }

}  // namespace muster
