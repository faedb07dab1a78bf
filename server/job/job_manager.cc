#include "server/job/job_manager.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/grpc_status.h"
#include "server/cluster/checkpoint_lineage.h"
#include "server/job/page_token.h"
#include "server/job/placement.h"
#include "server/job/request_id.h"

namespace muster {
namespace {

bool Selects(const v1::ListJobsRequest& request, const v1::Job& job) {
  const auto& states = request.states();
  if (!states.empty() && std::find(states.begin(), states.end(), job.state()) == states.end()) return false;
  return std::all_of(request.labels().begin(), request.labels().end(), [&](const auto& label) {
    const auto found = job.spec().labels().find(label.first);
    return found != job.spec().labels().end() && found->second == label.second;
  });
}

bool Selects(const v1::ListEventsRequest& request, const v1::Event& event) {
  const auto& types = request.types();
  return types.empty() || std::find(types.begin(), types.end(), event.type()) != types.end();
}

}  // namespace

absl::StatusOr<JobEntry*> JobManager::Find(const std::string& job) {
  JobEntry* entry = job.empty() ? nullptr : table_->Find(job);
  if (entry != nullptr && !entry->committed.id().empty()) return entry;
  return ErrorWithInfo(absl::StatusCode::kNotFound, "JOB_NOT_FOUND", absl::StrCat("no job ", job), {{"job", job}});
}

void JobManager::Submit(const v1::SubmitJobRequest& request, Reply reply) {
  if (absl::Status status = CheckRequestId(request.request_id()); !status.ok()) {
    reply(std::move(status));
    return;
  }
  JobEntry* known = request.request_id().empty() ? nullptr : table_->FindRequest(request.request_id());
  if (known != nullptr) {
    ReplyToRepeated(request, *known, std::move(reply));
    return;
  }
  const std::string id = request.validate_only() ? "" : table_->NextId();
  absl::StatusOr<AdmittedJob> admitted = admission_->Admit(request.spec(), id, SnapshotDevices(*table_, *registry_));
  if (!admitted.ok()) {
    reply(admitted.status());
    return;
  }
  server::JobRecord record = RecordOf(request.spec(), *admitted, request.request_id());
  if (request.validate_only()) {
    reply(record.job());
    return;
  }
  JobEntry* entry = table_->Add(std::move(record));
  table_->Commit(*entry, supervisor_->ScheduleAndReply(*entry, std::move(reply)));
}

void JobManager::ReplyToRepeated(const v1::SubmitJobRequest& request, JobEntry& entry, Reply reply) {
  if (entry.record.job().spec().SerializeAsString() != request.spec().SerializeAsString()) {
    reply(RequestIdReusedError(request.request_id(), entry));
    return;
  }
  // The first call may still wait for its commit.
  table_->AfterCommits(table_->ReplyWithView(entry, std::move(reply)));
}

absl::StatusOr<v1::Job> JobManager::Get(const std::string& job) {
  MUSTER_ASSIGN_OR_RETURN(JobEntry* const entry, Find(job));
  return table_->View(*entry);
}

absl::StatusOr<v1::ListJobsResponse> JobManager::List(const v1::ListJobsRequest& request) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t size, PageSize(request.page_size()));
  MUSTER_ASSIGN_OR_RETURN(const int64_t before, ReadPageToken("ListJobs", request.page_token()));
  v1::ListJobsResponse response;
  int64_t last = 0;
  for (auto item = table_->jobs().rbegin(); item != table_->jobs().rend(); ++item) {
    const JobEntry& entry = *item->second;
    if ((before > 0 && item->first >= before) || entry.committed.id().empty()) continue;
    v1::Job view = table_->View(entry);
    if (!Selects(request, view)) continue;
    if (response.jobs_size() == size) {
      response.set_next_page_token(MakePageToken("ListJobs", last));
      break;
    }
    *response.add_jobs() = std::move(view);
    last = item->first;
  }
  return response;
}

absl::StatusOr<v1::ListEventsResponse> JobManager::ListEvents(const v1::ListEventsRequest& request) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t size, PageSize(request.page_size()));
  MUSTER_ASSIGN_OR_RETURN(const int64_t after, ReadPageToken("ListEvents", request.page_token()));
  std::map<int64_t, const v1::Event*> events;  // of one job or all, oldest first
  const auto collect = [&](const JobEntry& entry) {
    for (const v1::Event& event : entry.events) {
      if (event.sequence() > after && Selects(request, event)) events[event.sequence()] = &event;
    }
  };
  if (request.job().empty()) {
    for (const auto& item : table_->jobs()) collect(*item.second);
  } else {
    MUSTER_ASSIGN_OR_RETURN(const JobEntry* const entry, Find(request.job()));
    collect(*entry);
  }
  v1::ListEventsResponse response;
  for (const auto& item : events) {
    if (response.events_size() == size) {
      response.set_next_page_token(MakePageToken("ListEvents", response.events().rbegin()->sequence()));
      break;
    }
    *response.add_events() = *item.second;
  }
  return response;
}

absl::StatusOr<v1::ListCheckpointsResponse> JobManager::ListCheckpoints(const v1::ListCheckpointsRequest& request) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t size, PageSize(request.page_size()));
  MUSTER_ASSIGN_OR_RETURN(const int64_t before, ReadPageToken("ListCheckpoints", request.page_token()));
  MUSTER_ASSIGN_OR_RETURN(const JobEntry* const entry, Find(request.job()));
  const auto& checkpoints = entry->record.checkpoints();
  v1::ListCheckpointsResponse response;
  for (auto checkpoint = checkpoints.rbegin(); checkpoint != checkpoints.rend(); ++checkpoint) {
    const int64_t place = checkpoints.rend() - checkpoint;  // from 1 at the oldest
    if (before > 0 && place >= before) continue;
    if (response.checkpoints_size() == size) {
      response.set_next_page_token(MakePageToken("ListCheckpoints", place + 1));
      break;
    }
    *response.add_checkpoints() = *checkpoint;
  }
  return response;
}

absl::StatusOr<v1::Plan> JobManager::Plan(const v1::PlanJobRequest& request) {
  if (request.search()) {
    return ErrorWithInfo(absl::StatusCode::kUnimplemented, "UNIMPLEMENTED",
                         "PlanJob with search is not supported yet: give the layout in spec.parallelism",
                         {{"call", "JobService.PlanJob"}, {"field", "search"}});
  }
  return admission_->PlanOf(request.spec(), SnapshotDevices(*table_, *registry_));
}

void JobManager::Cancel(const v1::CancelJobRequest& request, Reply reply) {
  absl::StatusOr<JobEntry*> entry = Find(request.job());
  if (!entry.ok()) {
    reply(entry.status());
    return;
  }
  const std::string reason = request.reason().empty() ? "cancelled by the user" : request.reason();
  supervisor_->Request(**entry, JobEvent::kCancel, reason, std::move(reply));
}

void JobManager::Pause(const v1::PauseJobRequest& request, Reply reply) {
  absl::StatusOr<JobEntry*> entry = Find(request.job());
  if (!entry.ok()) {
    reply(entry.status());
    return;
  }
  supervisor_->Request(**entry, JobEvent::kPause, "paused by the user", std::move(reply));
}

void JobManager::Resume(const v1::ResumeJobRequest& request, Reply reply) {
  absl::StatusOr<JobEntry*> entry = Find(request.job());
  if (!entry.ok()) {
    reply(entry.status());
    return;
  }
  const v1::Checkpoint found = ResumePoint((*entry)->record.checkpoints(), request.from_step());
  if (request.from_step() != 0 && found.step() != request.from_step()) {
    reply(ErrorWithInfo(absl::StatusCode::kNotFound, "CHECKPOINT_NOT_FOUND",
                        absl::StrCat((*entry)->id(), " has no checkpoint of step ", request.from_step()),
                        {{"job", (*entry)->id()}, {"step", absl::StrCat(request.from_step())}}));
    return;
  }
  if ((*entry)->state() == v1::PAUSED) (*entry)->record.set_resume_from_step(request.from_step());
  supervisor_->Request(**entry, JobEvent::kResume, "resumed by the user", std::move(reply));
}

absl::Status JobManager::Watch(const v1::WatchJobRequest& request, JobWatcher* watcher) {
  MUSTER_ASSIGN_OR_RETURN(JobEntry* const entry, Find(request.job()));
  return table_->Watch(*entry, request.resume_token(), watcher);
}

}  // namespace muster
