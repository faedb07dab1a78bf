#include "server/job/job_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/proto_time.h"

namespace muster {
namespace {

// Events kept of each job. A job that is killed every minute for half a day has less.
constexpr size_t kEventsPerJob = 2000;
// What a new watcher is shown of the past.
constexpr size_t kSnapshotEvents = 20;

std::string JobKey(int64_t number) { return absl::StrFormat("job/%012d", number); }
std::string EventKey(int64_t sequence) { return absl::StrFormat("event/%016d", sequence); }

absl::Status Unreadable(const std::string& key) {
  return absl::DataLossError(
      absl::StrCat("the record ", key, " in the state directory cannot be read; restore muster.db from a copy"));
}

}  // namespace

absl::Status JobTable::Load(int64_t starts) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Record> jobs, store_->Scan("job/"));
  std::map<std::string, JobEntry*> by_id;
  for (const Record& stored : jobs) {
    auto entry = std::make_unique<JobEntry>();
    if (!entry->record.ParseFromString(stored.value)) return Unreadable(stored.key);
    v1::Job* job = entry->record.mutable_job();
    job->set_revision(std::max(job->revision(), starts << 32));
    entry->committed = *job;
    entry->state_since = clock_->SinceBoot();
    entry->progress.CountedUpTo(std::max(job->progress().step(), entry->record.budget().best_step()));
    if (!entry->record.request_id().empty()) requests_[entry->record.request_id()] = entry.get();
    by_id[job->id()] = entry.get();
    jobs_[entry->record.number()] = std::move(entry);
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Record> events, store_->Scan("event/"));
  for (const Record& stored : events) {
    v1::Event event;
    if (!event.ParseFromString(stored.value)) return Unreadable(stored.key);
    next_sequence_ = event.sequence() + 1;
    const auto owner = by_id.find(event.job_id());
    if (owner != by_id.end()) owner->second->events.push_back(std::move(event));
  }
  return absl::OkStatus();
}

JobEntry* JobTable::Find(const std::string& id_or_name) {
  absl::string_view digits = id_or_name;
  int64_t number = 0;
  if (absl::ConsumePrefix(&digits, "job-") && absl::SimpleAtoi(digits, &number)) {
    const auto found = jobs_.find(number);
    if (found != jobs_.end() && found->second->id() == id_or_name) return found->second.get();
  }
  JobEntry* newest = nullptr;
  for (auto entry = jobs_.rbegin(); entry != jobs_.rend(); ++entry) {
    if (entry->second->record.job().spec().name() != id_or_name) continue;
    if (!IsFinal(entry->second->state())) return entry->second.get();
    if (newest == nullptr) newest = entry->second.get();
  }
  return newest;
}

JobEntry* JobTable::FindRequest(const std::string& request_id) {
  const auto found = requests_.find(request_id);
  return found == requests_.end() ? nullptr : found->second;
}

int64_t JobTable::NextNumber() const { return jobs_.empty() ? 1 : jobs_.rbegin()->first + 1; }

std::string JobTable::NextId() const { return absl::StrCat("job-", NextNumber()); }

JobEntry* JobTable::Add(server::JobRecord record) {
  const int64_t number = NextNumber();
  auto entry = std::make_unique<JobEntry>();
  JobEntry* added = entry.get();
  entry->record = std::move(record);
  entry->record.set_number(number);
  entry->state_since = clock_->SinceBoot();
  v1::Job* job = entry->record.mutable_job();
  job->set_id(NextId());
  job->set_state(v1::QUEUED);
  *job->mutable_submitted_at() = ToProto(clock_->Now());
  *entry->record.mutable_queued_at() = job->submitted_at();
  if (!entry->record.request_id().empty()) requests_[entry->record.request_id()] = added;
  jobs_[number] = std::move(entry);
  AddEvent(*added, v1::INFO, "SUBMITTED", absl::StrCat("submitted as ", job->id()));
  return added;
}

void JobTable::Transition(JobEntry& entry, JobEvent event, const std::string& code, const std::string& reason) {
  const absl::StatusOr<v1::JobState> next = NextState(entry.state(), event);
  MUSTER_CHECK(next.ok(), entry.id(), ": ", next.status().message());
  v1::Job* job = entry.record.mutable_job();
  const v1::JobState from = job->state();
  job->set_state(*next);
  job->set_state_reason(reason);
  job->set_state_reason_code(code);
  entry.state_since = clock_->SinceBoot();
  if (*next == v1::STARTING && !job->has_started_at()) *job->mutable_started_at() = ToProto(clock_->Now());
  job->clear_ended_at();
  if (IsFinal(*next)) *job->mutable_ended_at() = ToProto(clock_->Now());
  if (*next != v1::QUEUED) job->clear_queue_status();
  const v1::EventSeverity severity = *next == v1::FAILED ? v1::ERROR : *next == v1::RECOVERING ? v1::WARNING : v1::INFO;
  AddEvent(entry, severity, "STATE_CHANGED", absl::StrCat(StateName(from), " -> ", StateName(*next), ": ", reason));
  auto& details = *entry.new_events.back().mutable_details();
  details["from"] = StateName(from);
  details["to"] = StateName(*next);
  details["cause"] = code;
}

void JobTable::AddEvent(JobEntry& entry, v1::EventSeverity severity, const std::string& type,
                        const std::string& message, const std::string& worker, int64_t rank) {
  v1::Event event;
  event.set_sequence(next_sequence_++);
  *event.mutable_time() = ToProto(clock_->Now());
  event.set_job_id(entry.id());
  event.set_attempt(entry.attempt());
  event.set_severity(severity);
  event.set_type(type);
  event.set_message(message);
  event.set_worker(worker);
  event.set_rank(rank);
  entry.new_events.push_back(std::move(event));
}

void JobTable::Commit(JobEntry& entry, absl::AnyInvocable<void(absl::Status)> released) {
  v1::Job* job = entry.record.mutable_job();
  job->set_revision(job->revision() + 1);
  Batch batch;
  std::vector<v1::Event> events(entry.new_events.begin(), entry.new_events.end());
  entry.new_events.clear();
  for (const v1::Event& event : events) batch.puts.push_back({EventKey(event.sequence()), event.SerializeAsString()});
  for (size_t i = 0; entry.events.size() - i + events.size() > kEventsPerJob && i < entry.events.size(); ++i) {
    batch.deletes.push_back(EventKey(entry.events[i].sequence()));
    entry.record.set_trimmed_events(entry.events[i].sequence());
  }
  batch.puts.push_back({JobKey(entry.record.number()), entry.record.SerializeAsString()});
  ++entry.commits_under_way;
  store_->Commit(std::move(batch), [this, &entry, job = *job, events = std::move(events),
                                    released = std::move(released)](absl::Status committed) mutable {
    --entry.commits_under_way;
    if (committed.ok()) {
      Release(entry, job, events);
    } else if (!std::exchange(store_failed_, true)) {
      hooks_.on_store_failure(committed);
    }
    released(committed);
  });
}

void JobTable::AfterCommits(absl::AnyInvocable<void(absl::Status)> released) {
  store_->Commit(Batch{}, std::move(released));
}

void JobTable::Release(JobEntry& entry, const v1::Job& job, const std::vector<v1::Event>& events) {
  entry.committed = job;
  for (const v1::Event& event : events) {
    if (hooks_.on_event) hooks_.on_event(event);
  }
  entry.events.insert(entry.events.end(), events.begin(), events.end());
  while (!entry.events.empty() && entry.events.front().sequence() <= entry.record.trimmed_events()) {
    entry.events.pop_front();
  }
  entry.progress_changed = false;
  v1::WatchJobResponse change = MakeChange(entry);
  for (const v1::Event& event : events) *change.add_events() = event;
  const bool final = IsFinal(entry.committed.state());
  auto range = watchers_.equal_range(entry.id());
  std::vector<JobWatcher*> told;
  for (auto watcher = range.first; watcher != range.second; ++watcher) told.push_back(watcher->second);
  if (final) watchers_.erase(range.first, range.second);
  for (JobWatcher* watcher : told) {
    watcher->OnChange(change);
    if (final) watcher->OnEnd(absl::OkStatus());
  }
}

void JobTable::Touch(JobEntry& entry) {
  v1::Job* job = entry.record.mutable_job();
  job->set_revision(job->revision() + 1);
  entry.progress_changed = true;
}

void JobTable::FlushProgress() {
  for (const auto& watcher : watchers_) {
    JobEntry* entry = Find(watcher.first);
    if (entry->progress_changed) watcher.second->OnChange(MakeChange(*entry));
  }
  for (const auto& entry : jobs_) entry.second->progress_changed = false;
}

absl::AnyInvocable<void(absl::Status)> JobTable::ReplyWithView(
    JobEntry& entry, absl::AnyInvocable<void(absl::StatusOr<v1::Job>)> reply) const {
  return [this, &entry, reply = std::move(reply)](absl::Status committed) mutable {
    if (committed.ok()) {
      reply(View(entry));
    } else {
      reply(std::move(committed));
    }
  };
}

v1::Job JobTable::View(const JobEntry& entry) const {
  v1::Job view = entry.committed;
  const v1::Job& newest = entry.record.job();
  view.set_revision(newest.revision());
  if (newest.attempt() == view.attempt()) {
    *view.mutable_progress() = newest.progress();
    *view.mutable_ranks() = newest.ranks();
  }
  if (view.state() == v1::QUEUED && newest.state() == v1::QUEUED) {
    *view.mutable_queue_status() = newest.queue_status();
    view.set_state_reason(newest.state_reason());
    view.set_state_reason_code(newest.state_reason_code());
  }
  return view;
}

v1::WatchJobResponse JobTable::MakeChange(const JobEntry& entry) const {
  v1::WatchJobResponse change;
  *change.mutable_job() = View(entry);
  const int64_t newest = entry.events.empty() ? entry.record.trimmed_events() : entry.events.back().sequence();
  change.set_resume_token(absl::StrCat("after-", newest));
  return change;
}

absl::Status JobTable::Watch(JobEntry& entry, const std::string& resume_token, JobWatcher* watcher) {
  int64_t after = -1;
  if (!resume_token.empty()) {
    absl::string_view number = resume_token;
    if (!absl::ConsumePrefix(&number, "after-") || !absl::SimpleAtoi(number, &after) || after < 0) {
      return ErrorWithInfo(absl::StatusCode::kInvalidArgument, "INVALID_RESUME_TOKEN",
                           "resume_token is not one that WatchJob gave", {{"resume_token", resume_token}});
    }
    if (after < entry.record.trimmed_events()) {
      return ErrorWithInfo(absl::StatusCode::kOutOfRange, "RESUME_TOKEN_EXPIRED",
                           "events behind resume_token are kept no longer; watch again without it",
                           {{"resume_token", resume_token}, {"job", entry.id()}});
    }
  }
  v1::WatchJobResponse snapshot = MakeChange(entry);
  const size_t begin = entry.events.size() - std::min(entry.events.size(), kSnapshotEvents);
  for (size_t i = after >= 0 ? 0 : begin; i < entry.events.size(); ++i) {
    if (entry.events[i].sequence() > after) *snapshot.add_events() = entry.events[i];
  }
  watcher->OnChange(snapshot);
  if (IsFinal(entry.committed.state())) {
    watcher->OnEnd(absl::OkStatus());
  } else {
    watchers_.emplace(entry.id(), watcher);
  }
  return absl::OkStatus();
}

void JobTable::Unwatch(JobWatcher* watcher) {
  for (auto entry = watchers_.begin(); entry != watchers_.end();) {
    entry = entry->second == watcher ? watchers_.erase(entry) : std::next(entry);
  }
}

void JobTable::EndWatches(const absl::Status& status) {
  for (const auto& watcher : std::exchange(watchers_, {})) watcher.second->OnEnd(status);
}

}  // namespace muster
