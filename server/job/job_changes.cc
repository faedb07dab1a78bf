#include "server/job/job_changes.h"

#include <google/protobuf/util/field_mask_util.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/proto_time.h"
#include "server/job/attempt.h"
#include "server/job/placement.h"
#include "server/job/request_id.h"

namespace muster {
namespace {

using google::protobuf::FieldMask;
using google::protobuf::util::FieldMaskUtil;

constexpr const char* kUpdatable[] = {"training.steps", "policy.priority", "labels"};

// `from`'s fields of the mask over those of `to`.
absl::Status Merge(const FieldMask& mask, const v1::JobSpec& from, v1::JobSpec* to) {
  for (const std::string& path : mask.paths()) {
    if (!FieldMaskUtil::IsValidPath<v1::JobSpec>(path)) {
      return FieldError("update_mask", absl::StrCat("\"", path, "\" is no field of a job"));
    }
  }
  FieldMaskUtil::MergeOptions options;
  options.set_replace_message_fields(true);
  options.set_replace_repeated_fields(true);
  FieldMaskUtil::MergeMessageTo(from, mask, options, to);
  return absl::OkStatus();
}

// A checkpoint is of one model: everything that says which must be the same.
absl::Status CheckSameModel(const std::string& source, const v1::ModelSpec& theirs, const v1::ModelSpec& ours) {
  google::protobuf::util::DefaultFieldComparator comparator;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.set_field_comparator(&comparator);
  for (const char* may_differ : {"init_from", "frozen"}) {
    differencer.IgnoreField(v1::ModelSpec::descriptor()->FindFieldByName(may_differ));
  }
  std::string differences;
  differencer.ReportDifferencesToString(&differences);
  if (differencer.Compare(theirs, ours)) return absl::OkStatus();
  // "modified: hidden: 64 -> 96": the first line names the field.
  const std::string first = differences.substr(0, differences.find('\n'));
  const size_t name = first.find(": ") + 2;
  const size_t end = first.find(':', name);
  return FieldError(absl::StrCat("spec.model.", first.substr(name, end - name)),
                    absl::StrCat("a fork keeps the model of its checkpoint (", source, first.substr(end), ")"));
}

}  // namespace

void JobChanges::Update(const v1::UpdateJobRequest& request, Reply reply) {
  absl::StatusOr<JobEntry*> entry = manager_->Find(request.job());
  const absl::Status applied = entry.ok() ? ApplyUpdate(request, **entry) : entry.status();
  if (!applied.ok()) {
    reply(applied);
    return;
  }
  supervisor_->Save(**entry, supervisor_->ScheduleAndReply(**entry, std::move(reply)));
}

absl::Status JobChanges::ApplyUpdate(const v1::UpdateJobRequest& request, JobEntry& entry) {
  const FieldMask& mask = request.update_mask();
  if (mask.paths().empty()) return FieldError("update_mask", "names no field");
  for (const std::string& path : mask.paths()) {
    if (std::find(std::begin(kUpdatable), std::end(kUpdatable), path) == std::end(kUpdatable)) {
      return FieldError("update_mask",
                        absl::StrCat("\"", path, "\" cannot change in a job that exists; there are ",
                                     absl::StrJoin(kUpdatable, ", "), ". Fork the job to change others"));
    }
  }
  const v1::JobState state = entry.state();
  if (state == v1::CANCELLING || state == v1::CANCELLED || state == v1::FAILED) {
    return WrongStateError(entry.record.job(), absl::StrCat("cannot update ", entry.id()));
  }
  v1::Job* job = entry.record.mutable_job();
  v1::JobSpec changed = job->resolved_spec();
  MUSTER_RETURN_IF_ERROR(Merge(mask, request.spec(), &changed));
  MUSTER_RETURN_IF_ERROR(admission_->Admit(changed, entry.id(), SnapshotDevices(*table_, *registry_)).status());
  const int64_t before = job->resolved_spec().training().steps();
  const int64_t after = changed.training().steps();
  const int64_t done = job->progress().step();
  if (after != before && after <= done) {
    return FieldError("spec.training.steps", absl::StrCat("is ", after, ", and step ", done, " is done already"));
  }
  if (after != before && state == v1::COMPLETED && ResumePointOf(entry.record, 0).path().empty()) {
    return WrongStateError(entry.record.job(), absl::StrCat(entry.id(), " has no checkpoint to train on from"));
  }
  MUSTER_RETURN_IF_ERROR(Merge(mask, request.spec(), job->mutable_spec()));
  *job->mutable_resolved_spec() = changed;
  job->mutable_progress()->set_steps(after);
  table_->AddEvent(entry, v1::INFO, "UPDATED",
                   absl::StrCat("changed by the user: ", absl::StrJoin(mask.paths(), ", ")));
  if (after == before) return absl::OkStatus();
  const std::string reason = absl::StrCat("training.steps ", before, " -> ", after);
  if (state == v1::COMPLETED) {
    table_->Transition(entry, JobEvent::kExtended, "MORE_STEPS", absl::StrCat(reason, ", trains on from step ", done));
    *entry.record.mutable_queued_at() = ToProto(clock_->Now());
  } else if (state == v1::STARTING || state == v1::RUNNING) {
    supervisor_->RestartAttempt(entry, reason);
  }
  return absl::OkStatus();
}

void JobChanges::Fork(const v1::ForkJobRequest& request, Reply reply) {
  if (absl::Status status = CheckRequestId(request.request_id()); !status.ok()) {
    reply(std::move(status));
    return;
  }
  absl::StatusOr<JobEntry*> source = manager_->Find(request.job());
  JobEntry* known = request.request_id().empty() ? nullptr : table_->FindRequest(request.request_id());
  if (known != nullptr) {
    // The newest checkpoint and its step may be others by now, and so may the spec: what is the same is the source.
    if (source.ok() && known->record.job().forked_from().job_id() != (*source)->id()) {
      reply(RequestIdReusedError(request.request_id(), *known));
      return;
    }
    table_->AfterCommits(table_->ReplyWithView(*known, std::move(reply)));
    return;
  }
  absl::StatusOr<server::JobRecord> fork = source.ok() ? MakeFork(request, **source) : source.status();
  if (!fork.ok()) {
    reply(fork.status());
    return;
  }
  if (request.validate_only()) {
    reply(fork->job());
    return;
  }
  const v1::JobOrigin origin = fork->job().forked_from();
  JobEntry* entry = table_->Add(*std::move(fork));
  entry->progress.CountedUpTo(origin.step());
  table_->AddEvent(*entry, v1::INFO, "FORKED",
                   absl::StrCat("begins with the checkpoint of step ", origin.step(), " of ", origin.job_id()));
  table_->Commit(*entry, supervisor_->ScheduleAndReply(*entry, std::move(reply)));
}

absl::StatusOr<server::JobRecord> JobChanges::MakeFork(const v1::ForkJobRequest& request, const JobEntry& source) {
  const v1::Checkpoint checkpoint = ResumePointOf(source.record, request.step());
  if (checkpoint.path().empty() || (request.step() != 0 && checkpoint.step() != request.step())) {
    return ErrorWithInfo(absl::StatusCode::kNotFound, "CHECKPOINT_NOT_FOUND",
                         request.step() == 0 ? absl::StrCat(source.id(), " has no checkpoint yet")
                                             : absl::StrCat(source.id(), " has no checkpoint of step ", request.step(),
                                                            "; see `muster get checkpoints ", source.id(), "`"),
                         {{"job", source.id()}, {"step", absl::StrCat(request.step())}});
  }
  v1::JobSpec spec =
      request.has_spec() && request.update_mask().paths().empty() ? request.spec() : source.record.job().spec();
  MUSTER_RETURN_IF_ERROR(Merge(request.update_mask(), request.spec(), &spec));
  const std::string id = request.validate_only() ? "" : table_->NextId();
  MUSTER_ASSIGN_OR_RETURN(const AdmittedJob admitted,
                          admission_->Admit(spec, id, SnapshotDevices(*table_, *registry_)));
  MUSTER_RETURN_IF_ERROR(
      CheckSameModel(source.id(), source.record.job().resolved_spec().model(), admitted.resolved_spec.model()));
  const int64_t steps = admitted.resolved_spec.training().steps();
  if (steps <= checkpoint.step()) {
    return FieldError("spec.training.steps",
                      absl::StrCat("is ", steps, ", and the checkpoint has ", checkpoint.step(), " steps behind it"));
  }
  server::JobRecord record = RecordOf(spec, admitted, request.request_id());
  v1::JobOrigin* origin = record.mutable_job()->mutable_forked_from();
  origin->set_job_id(source.id());
  origin->set_step(checkpoint.step());
  origin->set_path(checkpoint.path());
  return record;
}

void JobChanges::SaveCheckpoint(const v1::SaveCheckpointRequest& request, CheckpointReply reply) {
  absl::StatusOr<JobEntry*> found = manager_->Find(request.job());
  if (!found.ok()) {
    reply(found.status());
    return;
  }
  JobEntry& entry = **found;
  if (entry.state() != v1::RUNNING) {
    reply(WrongStateError(entry.record.job(), absl::StrCat("cannot write a checkpoint of ", entry.id())));
    return;
  }
  Waiting waiting{entry.id(), entry.attempt(), entry.record.job().progress().step(), std::move(reply)};
  if (Answer(waiting)) return;  // no step was done since the last one
  const bool asked = std::any_of(waiting_.begin(), waiting_.end(), [&](const Waiting& other) {
    return other.job_id == waiting.job_id && other.attempt == waiting.attempt && other.step == waiting.step;
  });
  waiting_.push_back(std::move(waiting));
  if (asked) return;  // one checkpoint is enough for both
  entry.record.mutable_commands()->set_checkpoint(entry.record.commands().checkpoint() + 1);
  supervisor_->Save(entry);
}

bool JobChanges::Answer(Waiting& waiting) {
  const v1::Job& job = table_->Find(waiting.job_id)->committed;
  const v1::Checkpoint& newest = job.last_checkpoint();
  if (newest.attempt() == waiting.attempt && !newest.path().empty() && newest.step() >= waiting.step) {
    waiting.reply(newest);
    return true;
  }
  // One that is asked to stop writes its checkpoint on the way.
  const bool goes_on = job.state() == v1::RUNNING || job.state() == v1::PAUSING || job.state() == v1::PREEMPTING;
  if (job.attempt() == waiting.attempt && goes_on) return false;
  waiting.reply(ErrorWithInfo(absl::StatusCode::kAborted, "ATTEMPT_ENDED",
                              absl::StrCat("attempt ", waiting.attempt, " of ", job.id(),
                                           " ended before the checkpoint was complete: ", job.state_reason()),
                              {{"job", job.id()}, {"attempt", absl::StrCat(waiting.attempt)}}));
  return true;
}

void JobChanges::Tick() {
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    waiting = Answer(*waiting) ? waiting_.erase(waiting) : std::next(waiting);
  }
}

void JobChanges::EndAll(const absl::Status& status) {
  for (Waiting& waiting : std::exchange(waiting_, {})) waiting.reply(status);
}

}  // namespace muster
