// Deletes the checkpoints that the coordinator says a job no longer needs. On a thread of its own: a large directory
// takes seconds to go.
//
// Owned by the agent. Only what lies strictly below the checkpoint root is ever touched.
#pragma once

#include <deque>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace muster {

class CheckpointJanitor {
 public:
  explicit CheckpointJanitor(std::string checkpoint_root);
  // Finishes the deletion under way and leaves the rest: the coordinator orders it again.
  ~CheckpointJanitor();
  CheckpointJanitor(const CheckpointJanitor&) = delete;
  CheckpointJanitor& operator=(const CheckpointJanitor&) = delete;

  // `path` is relative to the root. Returns at once; a path that is already on its way, or gone, does no harm.
  void Delete(const std::string& path);

  // Until everything that was asked for is done.
  void WaitUntilIdle();

 private:
  void Run();

  const std::string root_;
  absl::Mutex mutex_;
  std::deque<std::string> queue_ ABSL_GUARDED_BY(mutex_);  // the front is being deleted
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster
