#include "worker/agent/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "worker/agent/process_stats.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

namespace muster {
namespace {

// Everything the child needs between fork and exec, made before the fork: nothing there may allocate or lock.
struct Prepared {
  std::vector<std::string> environment_text;
  std::vector<char*> arguments;
  std::vector<char*> environment;
};

Prepared Prepare(const ChildCommand& command) {
  Prepared prepared;
  for (const std::string& argument : command.arguments)
    prepared.arguments.push_back(const_cast<char*>(argument.c_str()));
  prepared.arguments.push_back(nullptr);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (command.environment.count(text.substr(0, text.find('='))) == 0) prepared.environment_text.push_back(text);
  }
  for (const auto& [name, value] : command.environment)
    prepared.environment_text.push_back(absl::StrCat(name, "=", value));
  for (std::string& text : prepared.environment_text) prepared.environment.push_back(text.data());
  prepared.environment.push_back(nullptr);
  return prepared;
}

bool SetLimit(int resource, int64_t bytes) {
  if (bytes == 0) return true;
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return false;
  limit.rlim_cur = static_cast<rlim_t>(bytes);
  if (resource == RLIMIT_DATA || limit.rlim_max < limit.rlim_cur) limit.rlim_max = limit.rlim_cur;
  return setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0;
}

// In the child: async-signal-safe calls only. Returns when something failed, with errno.
void Become(const ChildCommand& command, const Prepared& prepared, pid_t parent, int null_fd, int output_fd) {
  if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return;
  if (getppid() != parent) _exit(1);  // it died before the line above
  if (dup2(null_fd, 0) < 0 || dup2(output_fd, 1) < 0 || dup2(output_fd, 2) < 0) return;
  if (!SetLimit(RLIMIT_DATA, command.data_limit_bytes) || !SetLimit(RLIMIT_STACK, command.stack_limit_bytes)) return;
  sigset_t none;
  sigemptyset(&none);
  if (sigprocmask(SIG_SETMASK, &none, nullptr) != 0 || signal(SIGPIPE, SIG_DFL) == SIG_ERR) return;
  execve(prepared.arguments[0], prepared.arguments.data(), prepared.environment.data());
}

}  // namespace

absl::StatusOr<ChildProcess> StartChild(const ChildCommand& command) {
  const Prepared prepared = Prepare(command);
  int output[2];
  int failure[2];  // carries errno of a child that could not become the program; exec closes it
  if (pipe2(output, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "making a pipe");
  ChildProcess child;
  child.output = FileDescriptor(output[0]);
  FileDescriptor output_end(output[1]);
  if (pipe2(failure, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "making a pipe");
  FileDescriptor failure_read(failure[0]);
  FileDescriptor failure_end(failure[1]);
  FileDescriptor null_file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null_file.valid()) return absl::ErrnoToStatus(errno, "opening /dev/null");
  fcntl(child.output.get(), F_SETFL, O_NONBLOCK);

  const pid_t parent = getpid();
  child.resident_at_fork_bytes = ResidentBytes(parent);
  child.pid = fork();
  if (child.pid < 0) return absl::ErrnoToStatus(errno, "forking");
  if (child.pid == 0) {
    Become(command, prepared, parent, null_file.get(), output_end.get());
    const int error = errno;
    if (write(failure_end.get(), &error, sizeof(error)) < 0) _exit(126);
    _exit(127);
  }
  failure_end.Close();
  child.pidfd = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0)));
  int error = child.pidfd.valid() ? 0 : errno;
  int told = 0;
  if (read(failure_read.get(), &told, sizeof(told)) == sizeof(told)) error = told;
  if (error != 0) {
    kill(child.pid, SIGKILL);
    waitpid(child.pid, nullptr, 0);
    return absl::ErrnoToStatus(error, absl::StrCat("starting ", command.arguments[0]));
  }
  return child;
}

absl::StatusOr<ChildEnd> ReapChild(const ChildProcess& child) {
  siginfo_t info{};
  rusage usage{};
  // The system call and not waitid(), whose wrapper leaves out the usage.
  while (syscall(SYS_waitid, P_PIDFD, child.pidfd.get(), &info, WEXITED, &usage) != 0) {
    if (errno != EINTR) return absl::ErrnoToStatus(errno, absl::StrCat("waiting for process ", child.pid));
  }
  ChildEnd end;
  if (info.si_code == CLD_EXITED) {
    end.exit_code = info.si_status;
  } else {
    end.signal = info.si_status;
  }
  const int64_t peak = int64_t{usage.ru_maxrss} << 10;
  if (peak > child.resident_at_fork_bytes) end.peak_resident_bytes = peak;
  return end;
}

void SignalChild(const ChildProcess& child, int signal) {
  // The process by its pidfd, which can never name another one.
  syscall(SYS_pidfd_send_signal, child.pidfd.get(), signal, nullptr, 0);
  // The rest of its group by the group's id, which stays taken while the child is not reaped. The child is of that
  // group too: any other signal would come to it twice, and a second SIGTERM ends a rank without its checkpoint.
  if (signal == SIGKILL) kill(-child.pid, SIGKILL);
}

}  // namespace muster
