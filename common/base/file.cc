#include "common/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/file_descriptor.h"
#include "common/base/file_writer.h"
#include "common/base/status_macros.h"

namespace muster {

absl::Status ErrnoStatus(int error, absl::string_view doing, absl::string_view path) {
  std::string reason = strerror(error);
  if (reason.size() > 1 && !std::isupper(static_cast<unsigned char>(reason[1]))) {
    reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  }
  const bool no_room = error == ENOSPC || error == EDQUOT || error == EFBIG;
  const absl::StatusCode code = no_room ? absl::StatusCode::kResourceExhausted : absl::ErrnoToStatusCode(error);
  return absl::Status(code, absl::StrCat(reason, " ", doing, " ", path));
}

namespace {

absl::StatusOr<int64_t> RegularFileSize(int fd, const std::string& path) {
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, "examining", path);
  if (!S_ISREG(info.st_mode)) return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
  return static_cast<int64_t>(info.st_size);
}

// Calls visit(name) for each entry but "." and "..", up to the first error, and closes `directory`; null is what
// opening it gave, with errno.
absl::Status ForEachEntry(DIR* directory, const std::string& path,
                          absl::FunctionRef<absl::Status(const char* name)> visit) {
  if (directory == nullptr) return ErrnoStatus(errno, "listing", path);
  absl::Status status;
  while (status.ok()) {
    errno = 0;
    const dirent* entry = readdir(directory);
    if (entry == nullptr) {
      if (errno != 0) status = ErrnoStatus(errno, "listing", path);
      break;
    }
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) status = visit(entry->d_name);
  }
  closedir(directory);
  return status;
}

absl::Status CheckBelow(const std::string& path, const std::string& root) {
  const std::string prefix = absl::StrCat(absl::StripSuffix(root, "/"), "/");
  bool climbs = false;
  for (absl::string_view part : absl::StrSplit(path, '/')) climbs = climbs || part == "..";
  if (!root.empty() && !climbs && absl::StartsWith(path, prefix) && path.size() > prefix.size()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("refusing to remove ", path, ": it is not below ", root));
}

absl::Status RemoveBelow(int parent, const char* name, const std::string& path) {
  if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) return absl::OkStatus();
  if (errno != EISDIR && errno != EPERM) return ErrnoStatus(errno, "removing", path);
  const int directory = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (directory < 0) return ErrnoStatus(errno, "opening", path);
  absl::Status status = ForEachEntry(fdopendir(directory), path, [&](const char* entry) {
    return RemoveBelow(directory, entry, absl::StrCat(path, "/", entry));
  });
  if (status.ok() && unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT) {
    status = ErrnoStatus(errno, "removing", path);
  }
  return status;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t limit_bytes) {
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus(errno, "opening", path);
  MUSTER_ASSIGN_OR_RETURN(const int64_t size, RegularFileSize(file.get(), path));
  if (size > limit_bytes) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has ", size, " bytes; at most ", limit_bytes, " are read at once"));
  }
  std::string contents(static_cast<size_t>(size), '\0');
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t got = read(file.get(), contents.data() + done, contents.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "reading", path);
    if (got == 0) break;  // it has become shorter: what is there is its content
    done += static_cast<size_t>(got);
  }
  contents.resize(done);
  return contents;
}

absl::Status WriteFileDurably(const std::string& path, absl::string_view contents) {
  const std::string temporary = absl::StrCat(path, ".tmp-", getpid());
  MUSTER_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(temporary));
  MUSTER_RETURN_IF_ERROR(
      writer.Append(absl::MakeConstSpan(reinterpret_cast<const std::byte*>(contents.data()), contents.size())));
  MUSTER_RETURN_IF_ERROR(writer.Finish());
  absl::Status renamed = RenameDurably(temporary, path);
  if (!renamed.ok()) unlink(temporary.c_str());
  return renamed;
}

absl::StatusOr<int64_t> FileSize(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, "examining", path);
  if (!S_ISREG(info.st_mode)) return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
  return static_cast<int64_t>(info.st_size);
}

bool PathExists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

absl::Status MakeDirectories(const std::string& path) {
  for (size_t end = 1; end <= path.size(); ++end) {
    if (end != path.size() && path[end] != '/') continue;
    const std::string prefix = path.substr(0, end);
    if (mkdir(prefix.c_str(), 0777) == 0 || errno == EEXIST) continue;
    // An existing directory may sit on a file system that answers something else than EEXIST, as a read-only one does.
    struct stat info;
    const int error = errno;
    if (stat(prefix.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
      return ErrnoStatus(error, "making directory", prefix);
    }
  }
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, "examining", path);
  if (!S_ISDIR(info.st_mode)) return absl::FailedPreconditionError(absl::StrCat(path, " is not a directory"));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) {
  std::vector<std::string> names;
  MUSTER_RETURN_IF_ERROR(ForEachEntry(opendir(path.c_str()), path, [&](const char* name) {
    names.emplace_back(name);
    return absl::OkStatus();
  }));
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status RenameDurably(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) return ErrnoStatus(errno, absl::StrCat("renaming ", from, " to"), to);
  MUSTER_RETURN_IF_ERROR(SyncDirectory(DirectoryOf(to)));
  if (DirectoryOf(from) == DirectoryOf(to)) return absl::OkStatus();
  return SyncDirectory(DirectoryOf(from));
}

absl::Status SyncDirectory(const std::string& path) {
  FileDescriptor directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return ErrnoStatus(errno, "opening", path);
  // Some network file systems refuse to sync a directory (EINVAL): they have no later moment at which the name becomes
  // durable.
  if (fsync(directory.get()) != 0 && errno != EINVAL) return ErrnoStatus(errno, "syncing", path);
  return absl::OkStatus();
}

absl::Status RemoveTree(const std::string& path, const std::string& root) {
  MUSTER_RETURN_IF_ERROR(CheckBelow(path, root));
  return RemoveBelow(AT_FDCWD, path.c_str(), path);
}

absl::Status RemoveTreeAtOnce(const std::string& path, const std::string& root) {
  MUSTER_RETURN_IF_ERROR(CheckBelow(path, root));
  const std::string deleting = absl::StrCat(absl::StripSuffix(path, "/"), kDeletingSuffix);
  MUSTER_RETURN_IF_ERROR(RemoveTree(deleting, root));
  const absl::Status renamed = RenameDurably(path, deleting);
  if (absl::IsNotFound(renamed)) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(renamed);
  return RemoveTree(deleting, root);
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace muster
