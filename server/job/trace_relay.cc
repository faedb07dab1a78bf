#include "server/job/trace_relay.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/proto_time.h"
#include "server/job/chrome_trace.h"

namespace muster {
namespace {

constexpr int64_t kDefaultSteps = 3;
constexpr int64_t kMostSteps = 100;
constexpr absl::Duration kProfileDuration = absl::Minutes(1);
constexpr char kProfileDirectory[] = "profiles";

v1::TraceChunk Data(std::string data) {
  v1::TraceChunk chunk;
  chunk.set_data(std::move(data));
  return chunk;
}

}  // namespace

absl::Status TraceRelay::Open(const v1::TraceJobRequest& request, TraceReader* reader) {
  MUSTER_ASSIGN_OR_RETURN(JobEntry* const entry, manager_->Find(request.job()));
  if (request.steps() < 0 || request.steps() > kMostSteps) {
    return FieldError("steps", absl::StrCat("is ", request.steps(), ", not from 1 to ", kMostSteps));
  }
  if (entry->state() != v1::RUNNING) {
    return WrongStateError(entry->record.job(), absl::StrCat("cannot trace ", entry->id()));
  }
  if (request.has_profile()) return OpenProfile(request.profile(), *entry, reader);
  if (recordings_.count(entry->id()) > 0) {
    return PreconditionError(
        "TRACE_UNDER_WAY", absl::StrCat("jobs/", entry->id()),
        absl::StrCat("a timeline of ", entry->id(), " is being recorded; ask again when it is done"),
        {{"job", entry->id()}});
  }
  Recording& recording = recordings_[entry->id()];
  recording.reader = reader;
  recording.attempt = entry->attempt();
  recording.origin_nanos = absl::ToUnixNanos(clock_->Now());
  v1::RankCommands* commands = entry->record.mutable_commands();
  commands->set_trace(commands->trace() + 1);
  commands->set_trace_steps(request.steps() > 0 ? request.steps() : kDefaultSteps);
  supervisor_->Save(*entry);
  return absl::OkStatus();
}

absl::Status TraceRelay::OpenProfile(const v1::ProfileRequest& request, JobEntry& entry, TraceReader* reader) {
  if (request.profiler() != "nsys") {
    return FieldError("profile.profiler", absl::StrCat("\"", request.profiler(), "\" is none; there is nsys"));
  }
  if (request.rank() < 0 || request.rank() >= entry.record.ranks_size()) {
    return FieldError("profile.rank", absl::StrCat(entry.id(), " has the ranks 0 to ", entry.record.ranks_size() - 1));
  }
  const std::vector<std::string> parts = absl::StrSplit(request.directory(), '/');
  if (absl::StartsWith(request.directory(), "/") || std::find(parts.begin(), parts.end(), "..") != parts.end()) {
    return FieldError("profile.directory", absl::StrCat("\"", request.directory(),
                                                        "\" must be relative to the workers' checkpoint root, without "
                                                        "\"..\""));
  }
  const std::string worker = entry.record.ranks(static_cast<int>(request.rank())).worker();
  const WorkerRegistry::Worker* known = registry_->Find(worker);
  const auto& profilers = known->record.inventory().profilers();
  if (std::find(profilers.begin(), profilers.end(), request.profiler()) == profilers.end()) {
    return PreconditionError(
        "PROFILER_NOT_INSTALLED", absl::StrCat("workers/", worker),
        absl::StrCat(request.profiler(), " is not installed on ", worker, ", where rank ", request.rank(),
                     " runs: install NVIDIA Nsight Systems there, so that the worker's PATH has "
                     "it, and start the worker again"),
        {{"worker", worker}, {"profiler", request.profiler()}});
  }
  server::ProfileRecord* next = entry.record.mutable_next_profile();
  next->set_rank(request.rank());
  v1::RankProfile* profile = next->mutable_profile();
  profile->set_profiler(request.profiler());
  profile->set_directory(request.directory().empty() ? kProfileDirectory : request.directory());
  *profile->mutable_duration() = request.has_duration() ? request.duration() : ToProto(kProfileDuration);
  supervisor_->RestartAttempt(entry, absl::StrCat("rank ", request.rank(), " is to run under ", request.profiler()));
  v1::TraceChunk chunk;
  chunk.set_message(absl::StrCat("attempt ", entry.attempt() + 1, " of ", entry.id(), " begins with rank ",
                                 request.rank(), " under ", request.profiler(),
                                 "; its report will be in the directory ", profile->directory(),
                                 " of the checkpoint root, as ", entry.id(), ".attempt-", entry.attempt() + 1, ".rank-",
                                 request.rank(), ".nsys-rep"));
  profiling_.insert(reader);
  supervisor_->Save(entry, [this, reader, chunk](absl::Status committed) {
    if (profiling_.erase(reader) == 0) return;  // it has gone
    if (committed.ok()) reader->OnChunk(chunk);
    reader->OnEnd(committed);
  });
  return absl::OkStatus();
}

void TraceRelay::Close(TraceReader* reader) {
  profiling_.erase(reader);
  for (auto& recording : recordings_) {
    if (recording.second.reader == reader) recording.second.reader = nullptr;
  }
}

void TraceRelay::OnReport(const v1::RankReport& report) {
  const auto found = recordings_.find(report.job_id());
  if (found == recordings_.end() || found->second.attempt != report.attempt()) return;
  Recording& recording = found->second;
  const v1::Job& job = table_->Find(report.job_id())->committed;
  const v1::TraceReport& part = report.trace();
  if (recording.reader != nullptr) {
    std::string text;
    if (!std::exchange(recording.begun, true)) text = ChromeTraceHead(job, recording.origin_nanos);
    absl::StrAppend(&text, ChromeTraceEvents(report.rank(), part, recording.origin_nanos));
    recording.reader->OnChunk(Data(std::move(text)));
  }
  recording.dropped_spans += part.dropped_spans();
  recording.first_step = part.first_step();
  recording.steps = part.steps();
  if (part.done()) recording.done.insert(report.rank());
  if (static_cast<int>(recording.done.size()) < job.placements_size()) return;
  if (TraceReader* reader = recording.reader; reader != nullptr) {
    v1::TraceChunk last = Data(ChromeTraceTail());
    last.set_message(absl::StrCat("steps ", recording.first_step, " to ", recording.first_step + recording.steps - 1,
                                  " of ", job.placements_size(), " ranks"));
    if (recording.dropped_spans > 0) {
      absl::StrAppend(last.mutable_message(), "; ", recording.dropped_spans,
                      " spans had no room: record fewer steps to have all");
    }
    recordings_.erase(found);
    reader->OnChunk(last);
    reader->OnEnd(absl::OkStatus());
  } else {
    recordings_.erase(found);
  }
}

void TraceRelay::Tick() {
  for (auto item = recordings_.begin(); item != recordings_.end();) {
    const v1::Job& job = table_->Find(item->first)->committed;
    if (job.attempt() == item->second.attempt && job.state() == v1::RUNNING) {
      ++item;
      continue;
    }
    TraceReader* reader = item->second.reader;
    const int64_t attempt = item->second.attempt;
    item = recordings_.erase(item);
    if (reader == nullptr) continue;
    reader->OnEnd(ErrorWithInfo(absl::StatusCode::kAborted, "ATTEMPT_ENDED",
                                absl::StrCat("attempt ", attempt, " of ", job.id(),
                                             " ended before its timeline was complete: ", job.state_reason()),
                                {{"job", job.id()}, {"attempt", absl::StrCat(attempt)}}));
  }
}

void TraceRelay::EndAll(const absl::Status& status) {
  for (const auto& recording : std::exchange(recordings_, {})) {
    if (recording.second.reader != nullptr) recording.second.reader->OnEnd(status);
  }
  for (TraceReader* reader : std::exchange(profiling_, {})) reader->OnEnd(status);
}

}  // namespace muster
