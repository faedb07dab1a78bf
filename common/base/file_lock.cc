#include "common/base/file_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"

namespace muster {
namespace {

// Locks of the open file description, not of the process: closing some other descriptor of the file does not drop them,
// and unlike flock they can be asked about without being taken.
struct flock WholeFile() {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file.valid()) return ErrnoStatus(errno, "creating", path);
  struct flock lock = WholeFile();
  if (fcntl(file.get(), F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES) return ErrnoStatus(errno, "locking", path);
    absl::StatusOr<std::string> holder = ReadFile(path);
    std::string by = holder.ok() && !holder->empty() ? absl::StrCat("process ", absl::StripSuffix(*holder, "\n"))
                                                     : std::string("another process");
    return absl::FailedPreconditionError(absl::StrCat(path, " is locked by ", by));
  }
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(file.get(), 0) != 0 || pwrite(file.get(), pid.data(), pid.size(), 0) < 0) {
    return ErrnoStatus(errno, "writing", path);
  }
  return FileLock(std::move(file));
}

absl::StatusOr<bool> FileLock::IsHeld(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus(errno, "opening", path);
  struct flock lock = WholeFile();
  if (fcntl(file.get(), F_OFD_GETLK, &lock) != 0) return ErrnoStatus(errno, "examining the lock of", path);
  return lock.l_type != F_UNLCK;
}

}  // namespace muster
