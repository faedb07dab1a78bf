// One job as the coordinator holds it: the record that is stored, and what is known of it for the moment.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>

#include "absl/time/time.h"
#include "muster/v1/job.pb.h"
#include "server/job/progress.h"
#include "server/store/records.pb.h"

namespace muster {

// Owned by the JobTable; read and changed on the coordinator's loop.
struct JobEntry {
  // The newest state, which may be ahead of the store.
  server::JobRecord record;
  // The job as of the newest commit: what people may see.
  v1::Job committed;
  // Committed ones, oldest first, bounded.
  std::deque<v1::Event> events;
  // Made since the last commit was begun.
  std::deque<v1::Event> new_events;

  // Soft state, gone with the coordinator.
  ProgressTracker progress;
  absl::Duration state_since;  // since boot: when this coordinator saw it enter its state
  std::array<absl::Duration, 3> newest_steps = {-absl::InfiniteDuration(), -absl::InfiniteDuration(),
                                                -absl::InfiniteDuration()};  // when they were reported, newest first
  int64_t commits_under_way = 0;  // whose effects on others are still to come
  bool progress_changed = false;  // since watchers were last told

  const std::string& id() const { return record.job().id(); }
  v1::JobState state() const { return record.job().state(); }
  int64_t attempt() const { return record.job().attempt(); }
};

}  // namespace muster
