// An exclusive advisory lock on a file, held while the object lives and released by the kernel when the process dies in
// any way. By it a restarted agent knows that a rank lives, and two daemons never share a state directory.
//
// Owned by the process that must be alone; used by one thread. Children that inherit the descriptor would keep the
// lock: it is close-on-exec, and a process that forks without exec must not outlive it.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/file_descriptor.h"

namespace muster {

class FileLock {
 public:
  // Creates the file when missing and takes the lock at once or not at all: FAILED_PRECONDITION "PATH is locked by
  // process 123" while another holds it. The file stays after release; its content is the pid of the last holder.
  static absl::StatusOr<FileLock> Acquire(const std::string& path);

  // Whether some process holds the lock now; asking does not disturb one that is just taking it. NOT_FOUND without the
  // file.
  static absl::StatusOr<bool> IsHeld(const std::string& path);

 private:
  explicit FileLock(FileDescriptor file) : file_(std::move(file)) {}

  FileDescriptor file_;
};

}  // namespace muster
