#include "worker/agent/checkpoint_janitor.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"

namespace muster {

CheckpointJanitor::CheckpointJanitor(std::string checkpoint_root)
    : root_(std::move(checkpoint_root)), thread_([this] { Run(); }) {}

CheckpointJanitor::~CheckpointJanitor() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void CheckpointJanitor::Delete(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  if (std::find(queue_.begin(), queue_.end(), path) == queue_.end()) queue_.push_back(path);
}

void CheckpointJanitor::WaitUntilIdle() {
  absl::MutexLock lock(&mutex_);
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return queue_.empty(); };
  mutex_.Await(absl::Condition(&idle));
}

void CheckpointJanitor::Run() {
  while (true) {
    std::string path;
    {
      absl::MutexLock lock(&mutex_);
      const auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !queue_.empty(); };
      mutex_.Await(absl::Condition(&wanted));
      if (stopping_) return;
      path = queue_.front();
    }
    const absl::Status status = RemoveTreeAtOnce(absl::StrCat(root_, "/", path), root_);
    if (!status.ok()) {
      spdlog::warn("checkpoint {} was not deleted: {}", path, std::string(status.message()));
    }
    absl::MutexLock lock(&mutex_);
    queue_.pop_front();
  }
}

}  // namespace muster
