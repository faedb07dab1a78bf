#include "server/job/log_relay.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/grpc_status.h"

namespace muster {
namespace {

absl::Status WorkerGone(const std::string& worker) {
  return ErrorWithInfo(absl::StatusCode::kUnavailable, "WORKER_NOT_CONNECTED",
                       absl::StrCat(worker, ", which has the log, is not connected; ask again when it is back"),
                       {{"worker", worker}});
}

}  // namespace

absl::Status LogRelay::Open(const v1::StreamLogsRequest& request, LogReader* reader) {
  const JobEntry* entry = table_->Find(request.job());
  if (entry == nullptr) {
    return ErrorWithInfo(absl::StatusCode::kNotFound, "JOB_NOT_FOUND", absl::StrCat("no job ", request.job()),
                         {{"job", request.job()}});
  }
  Stream stream;
  stream.reader = reader;
  stream.request = request;
  stream.job_id = entry->id();
  stream.attempt = request.attempt() > 0 ? request.attempt() : entry->committed.attempt();
  const int64_t id = next_request_++;
  if (absl::Status asked = Ask(id, stream); !asked.ok()) {
    Cancel(id, stream);
    return asked;
  }
  streams_[id] = std::move(stream);
  return absl::OkStatus();
}

absl::Status LogRelay::Ask(int64_t id, Stream& stream) {
  const auto& attempts = table_->Find(stream.job_id)->record.attempts();
  const auto attempt = std::find_if(attempts.begin(), attempts.end(),
                                    [&](const auto& known) { return known.attempt() == stream.attempt; });
  if (attempt == attempts.end()) {
    return ErrorWithInfo(absl::StatusCode::kNotFound, "ATTEMPT_NOT_FOUND",
                         stream.attempt == 0 ? absl::StrCat(stream.job_id, " has not been placed yet: there is no log")
                                             : absl::StrCat(stream.job_id, " has no attempt ", stream.attempt),
                         {{"job", stream.job_id}, {"attempt", absl::StrCat(stream.attempt)}});
  }
  std::map<std::string, v1::LogRequest> requests;
  const auto& wanted = stream.request.ranks();
  for (const v1::RankPlacement& placement : attempt->placements()) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), placement.rank()) == wanted.end()) continue;
    requests[placement.worker()].add_ranks(placement.rank());
  }
  if (requests.empty()) {
    return ErrorWithInfo(absl::StatusCode::kNotFound, "RANK_NOT_FOUND",
                         absl::StrCat(stream.job_id, " has ", attempt->placements_size(), " ranks, from 0 on"),
                         {{"job", stream.job_id}});
  }
  for (auto& item : requests) {
    const WorkerRegistry::Worker* worker = registry_->Find(item.first);
    if (worker == nullptr || worker->session == nullptr) return WorkerGone(item.first);
    v1::LogRequest& request = item.second;
    request.set_request(id);
    request.set_job_id(stream.job_id);
    request.set_attempt(stream.attempt);
    request.set_follow(stream.request.follow());
    request.set_tail_lines(stream.request.tail_lines());
    stream.waiting[item.first] = worker->session;
    v1::CoordinatorMessage message;
    *message.mutable_log_request() = std::move(request);
    registry_->Send(item.first, std::move(message));
  }
  return absl::OkStatus();
}

void LogRelay::Cancel(int64_t id, const Stream& stream) {
  for (const auto& worker : stream.waiting) {
    v1::CoordinatorMessage message;
    message.mutable_log_request()->set_request(id);
    message.mutable_log_request()->set_cancel(true);
    registry_->Send(worker.first, std::move(message));
  }
}

void LogRelay::Close(LogReader* reader) {
  for (auto stream = streams_.begin(); stream != streams_.end(); ++stream) {
    if (stream->second.reader != reader) continue;
    Cancel(stream->first, stream->second);
    streams_.erase(stream);
    return;
  }
}

void LogRelay::OnReply(const std::string& worker, const v1::LogReply& reply) {
  const auto found = streams_.find(reply.request());
  if (found == streams_.end()) return;
  Stream& stream = found->second;
  LogReader* reader = stream.reader;
  if (!reply.error().empty()) {
    Cancel(found->first, stream);
    streams_.erase(found);
    reader->OnEnd(absl::InternalError(absl::StrCat(worker, ": ", reply.error())));
    return;
  }
  if (reply.done()) stream.waiting.erase(worker);
  if (reply.has_chunk()) reader->OnChunk(reply.chunk());
  if (reply.done() && Advance(reply.request(), stream)) streams_.erase(reply.request());
}

bool LogRelay::Advance(int64_t id, Stream& stream) {
  if (!stream.waiting.empty()) return false;
  const JobEntry* entry = table_->Find(stream.job_id);
  const v1::Job& job = entry->committed;
  const bool goes_on = stream.request.follow() && (stream.request.attempt() == 0);
  if (goes_on && job.attempt() > stream.attempt) {
    stream.attempt = job.attempt();
    stream.request.set_tail_lines(0);
    const absl::Status asked = Ask(id, stream);
    if (asked.ok()) return false;
    Cancel(id, stream);
    stream.reader->OnEnd(asked);
    return true;
  }
  if (goes_on && !IsFinal(job.state())) return false;
  stream.reader->OnEnd(absl::OkStatus());
  return true;
}

void LogRelay::Tick() {
  for (auto item = streams_.begin(); item != streams_.end();) {
    Stream& stream = item->second;
    const auto gone = std::find_if(stream.waiting.begin(), stream.waiting.end(), [this](const auto& waiting) {
      const WorkerRegistry::Worker* worker = registry_->Find(waiting.first);
      return worker == nullptr || worker->session != waiting.second;
    });
    bool ended = false;
    if (gone != stream.waiting.end()) {
      const absl::Status status = WorkerGone(gone->first);
      Cancel(item->first, stream);
      stream.reader->OnEnd(status);
      ended = true;
    } else {
      ended = Advance(item->first, stream);
    }
    item = ended ? streams_.erase(item) : std::next(item);
  }
}

void LogRelay::EndAll(const absl::Status& status) {
  for (const auto& stream : std::exchange(streams_, {})) stream.second.reader->OnEnd(status);
}

}  // namespace muster
