// One child process that cannot outlive its parent: started with its own process group, its memory limited, and its
// output in a pipe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/file_descriptor.h"

namespace muster {

struct ChildCommand {
  std::vector<std::string> arguments;              // the program's path first
  std::map<std::string, std::string> environment;  // set over our own

  // RLIMIT_DATA, bytes: what the child may allocate; 0: no limit. It counts address space and not only what is touched,
  // so it needs room for the stacks of threads.
  int64_t data_limit_bytes = 0;

  // RLIMIT_STACK, bytes, which glibc gives to every thread as well; 0: as ours.
  int64_t stack_limit_bytes = 0;
};

struct ChildProcess {
  pid_t pid = -1;
  int64_t resident_at_fork_bytes = 0;  // our own, which the kernel counts as the child's too
  FileDescriptor pidfd;                // readable when the child has ended
  FileDescriptor output;               // its stdout and stderr, non-blocking
};

// How a child ended.
struct ChildEnd {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;

  // The most bytes that were resident. 0 when the kernel cannot tell the child's from ours, which it was a copy of
  // before it became its program: when we were the larger one.
  int64_t peak_resident_bytes = 0;
};

// The kernel kills the child (SIGKILL) when the *thread* that called this ends: call it from one that lives as long as
// the process. NOT_FOUND, PERMISSION_DENIED and the like when the program cannot be run.
absl::StatusOr<ChildProcess> StartChild(const ChildCommand& command);

// Collects a child whose pidfd is readable; waits for it when it is not.
absl::StatusOr<ChildEnd> ReapChild(const ChildProcess& child);

// SIGKILL goes to the child and all of its process group; any other signal to the child alone, once. A child that has
// ended is no error.
void SignalChild(const ChildProcess& child, int signal);

}  // namespace muster
