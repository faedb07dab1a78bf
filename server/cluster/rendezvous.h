// Where the ranks of one attempt find each other: groups that are joined by all or by none, and keys that are set once
// and awaited. Everything lives under (job, attempt, group) and is forgotten with the attempt.
//
// Owned by the coordinator; all calls on its loop. Nothing here is stored: an attempt whose groups were not up when the
// coordinator died fails to join and is tried again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "muster/v1/rendezvous.pb.h"

namespace muster {

class Rendezvous {
 public:
  template <typename T>
  using Done = absl::AnyInvocable<void(absl::StatusOr<T>)>;
  using WaiterId = uint64_t;

  explicit Rendezvous(const Clock* clock) : clock_(clock) {}

  // From now on `attempt` is the job's current one. Calls of the one before fail with STALE_ATTEMPT.
  void OpenAttempt(const std::string& job_id, int64_t attempt);

  // The attempt is over: every waiting call fails with ABORTED and this reason, every later one with STALE_ATTEMPT.
  void CloseAttempt(const std::string& job_id, absl::string_view reason);

  // 0: none is open.
  int64_t CurrentAttempt(const std::string& job_id) const {
    const auto found = attempts_.find(job_id);
    return found == attempts_.end() ? 0 : found->second.number;
  }

  // Answers when all `size` ranks have joined, with their addresses in rank order. When one votes against, leaves or
  // does not come before somebody's deadline, the call of every rank fails, now and later, with the first reason.
  WaiterId JoinGroup(const v1::JoinGroupRequest& request, Done<v1::JoinGroupResponse> done);

  // ALREADY_EXISTS when the key holds another value; setting the same again is fine.
  absl::Status SetKey(const v1::GroupKey& key, const std::string& name, const std::string& value);

  // DEADLINE_EXCEEDED when the key is not set in time.
  WaiterId AwaitKey(const v1::GroupKey& key, const std::string& name, absl::Duration timeout, Done<std::string> done);

  // The caller has gone: its callback will not run. A rank that leaves a group it waits in votes against. Does nothing
  // to a call that has been answered.
  void Leave(WaiterId id);

  // Fails what is past its deadline. Called every few milliseconds.
  void Tick();

  // Calls that wait now.
  int64_t waiting() const;

 private:
  struct Member {
    std::string address;
    WaiterId id = 0;  // 0: its call has been answered
    absl::Duration deadline;
    absl::Duration timeout;
    Done<v1::JoinGroupResponse> done;
  };
  struct Group {
    int64_t size = 0;
    std::map<int64_t, Member> members;  // by rank
    absl::Status failure;               // the first reason against
  };
  struct KeyWaiter {
    WaiterId id = 0;
    absl::Duration deadline;
    absl::Duration timeout;
    Done<std::string> done;
  };
  struct Key {
    bool set = false;
    std::string value;
    std::vector<KeyWaiter> waiters;
  };
  struct Attempt {
    int64_t number = 0;
    std::map<std::string, Group> groups;
    std::map<std::pair<std::string, std::string>, Key> keys;  // by group and name
  };

  // The attempt that the key names, when it is the current one.
  absl::StatusOr<Attempt*> Find(const v1::GroupKey& key);
  void Complete(Group& group);
  void Fail(Group& group, absl::Status failure);

  const Clock* const clock_;
  WaiterId next_id_ = 1;
  std::map<std::string, Attempt> attempts_;  // by job
};

}  // namespace muster
