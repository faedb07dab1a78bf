#include "server/cluster/rendezvous.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/rpc/grpc_status.h"

namespace muster {
namespace {

// Ranks that name no time-out still do not wait for ever.
constexpr absl::Duration kDefaultTimeout = absl::Seconds(60);

absl::Duration TimeoutOf(const google::protobuf::Duration& timeout) {
  const absl::Duration given = absl::Seconds(timeout.seconds()) + absl::Nanoseconds(timeout.nanos());
  return given > absl::ZeroDuration() ? given : kDefaultTimeout;
}

absl::Status InvalidJoin(absl::string_view field, absl::string_view description) {
  google::rpc::BadRequest::FieldViolation violation;
  violation.set_field(std::string(field));
  violation.set_description(std::string(description));
  return BadRequestError({violation});
}

}  // namespace

void Rendezvous::OpenAttempt(const std::string& job_id, int64_t attempt) {
  CloseAttempt(job_id, absl::StrCat("attempt ", attempt, " took its place"));
  attempts_[job_id].number = attempt;
}

void Rendezvous::CloseAttempt(const std::string& job_id, absl::string_view reason) {
  auto node = attempts_.extract(job_id);
  if (node.empty()) return;
  Attempt& attempt = node.mapped();
  const absl::Status over =
      ErrorWithInfo(absl::StatusCode::kAborted, "ATTEMPT_OVER",
                    absl::StrCat("attempt ", attempt.number, " of ", job_id, " is over: ", reason),
                    {{"job", job_id}, {"attempt", absl::StrCat(attempt.number)}});
  for (auto& entry : attempt.groups) Fail(entry.second, over);
  for (auto& entry : attempt.keys) {
    for (KeyWaiter& waiter : entry.second.waiters) waiter.done(over);
  }
}

absl::StatusOr<Rendezvous::Attempt*> Rendezvous::Find(const v1::GroupKey& key) {
  const auto found = attempts_.find(key.job_id());
  if (found != attempts_.end() && found->second.number == key.attempt()) return &found->second;
  const std::string current = found == attempts_.end() ? "none" : absl::StrCat(found->second.number);
  return ErrorWithInfo(
      absl::StatusCode::kFailedPrecondition, "STALE_ATTEMPT",
      absl::StrCat("attempt ", key.attempt(), " of ", key.job_id(), " is not its current one (", current, ")"),
      {{"job", key.job_id()}, {"attempt", absl::StrCat(key.attempt())}, {"current_attempt", current}});
}

Rendezvous::WaiterId Rendezvous::JoinGroup(const v1::JoinGroupRequest& request, Done<v1::JoinGroupResponse> done) {
  absl::StatusOr<Attempt*> attempt = Find(request.key());
  if (!attempt.ok()) {
    done(attempt.status());
    return 0;
  }
  if (request.size() < 1 || request.rank() < 0 || request.rank() >= request.size()) {
    done(InvalidJoin("rank", absl::StrCat(request.rank(), " is not within a group of ", request.size())));
    return 0;
  }
  Group& group = (*attempt)->groups[request.key().group()];
  if (group.size == 0) group.size = request.size();
  if (group.size != request.size()) {
    done(InvalidJoin("size", absl::StrCat("group ", request.key().group(), " has ", group.size, " ranks for others, ",
                                          request.size(), " for rank ", request.rank())));
    return 0;
  }
  if (!request.ready() && group.failure.ok()) {
    Fail(group, ErrorWithInfo(absl::StatusCode::kAborted, "RANK_NOT_READY",
                              absl::StrCat("rank ", request.rank(), " voted against ", request.key().group(), ": ",
                                           request.reason()),
                              {{"group", request.key().group()}, {"rank", absl::StrCat(request.rank())}}));
  }
  if (!group.failure.ok()) {
    done(group.failure);
    return 0;
  }
  Member& member = group.members[request.rank()];
  if (member.id != 0) {  // it asks again: the first call's connection is gone
    member.done(absl::CancelledError("the rank joined again"));
  }
  const absl::Duration timeout = TimeoutOf(request.timeout());
  const WaiterId id = next_id_++;
  member = Member{request.address(), id, clock_->SinceBoot() + timeout, timeout, std::move(done)};
  if (static_cast<int64_t>(group.members.size()) == group.size) Complete(group);
  return id;
}

void Rendezvous::Complete(Group& group) {
  v1::JoinGroupResponse response;
  for (const auto& entry : group.members) response.add_addresses(entry.second.address);
  for (auto& entry : group.members) {
    if (entry.second.id == 0) continue;
    entry.second.id = 0;
    entry.second.done(response);
  }
}

void Rendezvous::Fail(Group& group, absl::Status failure) {
  if (group.failure.ok()) group.failure = std::move(failure);
  for (auto& entry : group.members) {
    if (entry.second.id == 0) continue;
    entry.second.id = 0;
    entry.second.done(group.failure);
  }
}

absl::Status Rendezvous::SetKey(const v1::GroupKey& key, const std::string& name, const std::string& value) {
  absl::StatusOr<Attempt*> attempt = Find(key);
  if (!attempt.ok()) return attempt.status();
  Key& entry = (*attempt)->keys[{key.group(), name}];
  if (entry.set && entry.value != value) {
    return ErrorWithInfo(absl::StatusCode::kAlreadyExists, "KEY_IS_SET",
                         absl::StrCat("key ", name, " of group ", key.group(), " holds another value"),
                         {{"group", key.group()}, {"key", name}});
  }
  entry.set = true;
  entry.value = value;
  for (KeyWaiter& waiter : std::exchange(entry.waiters, {})) waiter.done(value);
  return absl::OkStatus();
}

Rendezvous::WaiterId Rendezvous::AwaitKey(const v1::GroupKey& key, const std::string& name, absl::Duration timeout,
                                          Done<std::string> done) {
  absl::StatusOr<Attempt*> attempt = Find(key);
  if (!attempt.ok()) {
    done(attempt.status());
    return 0;
  }
  Key& entry = (*attempt)->keys[{key.group(), name}];
  if (entry.set) {
    done(entry.value);
    return 0;
  }
  if (timeout <= absl::ZeroDuration()) timeout = kDefaultTimeout;
  const WaiterId id = next_id_++;
  entry.waiters.push_back({id, clock_->SinceBoot() + timeout, timeout, std::move(done)});
  return id;
}

void Rendezvous::Leave(WaiterId id) {
  if (id == 0) return;
  for (auto& job : attempts_) {
    for (auto& entry : job.second.groups) {
      Group& group = entry.second;
      for (auto& member : group.members) {
        if (member.second.id != id) continue;
        member.second.id = 0;
        Fail(group, ErrorWithInfo(absl::StatusCode::kAborted, "RANK_LEFT",
                                  absl::StrCat("rank ", member.first, " left ", entry.first, " while it was joined"),
                                  {{"group", entry.first}, {"rank", absl::StrCat(member.first)}}));
        return;
      }
    }
    for (auto& entry : job.second.keys) {
      auto& waiters = entry.second.waiters;
      waiters.erase(std::remove_if(waiters.begin(), waiters.end(), [id](const KeyWaiter& w) { return w.id == id; }),
                    waiters.end());
    }
  }
}

void Rendezvous::Tick() {
  const absl::Duration now = clock_->SinceBoot();
  for (auto& job : attempts_) {
    for (auto& entry : job.second.groups) {
      Group& group = entry.second;
      for (const auto& member : group.members) {
        if (member.second.id == 0 || member.second.deadline > now) continue;
        std::vector<int64_t> missing;
        for (int64_t rank = 0; rank < group.size; ++rank) {
          if (group.members.count(rank) == 0) missing.push_back(rank);
        }
        Fail(group, ErrorWithInfo(absl::StatusCode::kDeadlineExceeded, "GROUP_INCOMPLETE",
                                  absl::StrCat(group.members.size(), " of ", group.size, " ranks joined ", entry.first,
                                               " within ", absl::FormatDuration(member.second.timeout),
                                               "; missing: ", absl::StrJoin(missing, ", ")),
                                  {{"group", entry.first}, {"missing", absl::StrJoin(missing, ",")}}));
        break;
      }
    }
    for (auto& entry : job.second.keys) {
      auto& waiters = entry.second.waiters;
      const auto late = std::stable_partition(waiters.begin(), waiters.end(),
                                              [now](const KeyWaiter& waiter) { return waiter.deadline > now; });
      std::vector<KeyWaiter> expired(std::make_move_iterator(late), std::make_move_iterator(waiters.end()));
      waiters.erase(late, waiters.end());
      for (KeyWaiter& waiter : expired) {
        waiter.done(ErrorWithInfo(absl::StatusCode::kDeadlineExceeded, "KEY_NOT_SET",
                                  absl::StrCat("key ", entry.first.second, " of group ", entry.first.first,
                                               " was not set within ", absl::FormatDuration(waiter.timeout)),
                                  {{"group", entry.first.first}, {"key", entry.first.second}}));
      }
    }
  }
}

int64_t Rendezvous::waiting() const {
  int64_t count = 0;
  for (const auto& job : attempts_) {
    for (const auto& group : job.second.groups) {
      for (const auto& member : group.second.members) count += member.second.id != 0;
    }
    for (const auto& key : job.second.keys) count += static_cast<int64_t>(key.second.waiters.size());
  }
  return count;
}

}  // namespace muster
