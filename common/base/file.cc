#include "common/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>

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

absl::Status RemoveBelow(int parent, const char* name, const std::string& path) {
  if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) return absl::OkStatus();
  if (errno != EISDIR && errno != EPERM) return ErrnoStatus(errno, "removing", path);
  FileDescriptor directory(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.valid()) return ErrnoStatus(errno, "opening", path);
  DIR* entries = fdopendir(dup(directory.get()));
  if (entries == nullptr) return ErrnoStatus(errno, "listing", path);
  absl::Status status;
  while (const dirent* entry = readdir(entries)) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    status = RemoveBelow(directory.get(), entry->d_name, absl::StrCat(path, "/", entry->d_name));
    if (!status.ok()) break;
  }
  closedir(entries);
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
  DIR* entries = opendir(path.c_str());
  if (entries == nullptr) return ErrnoStatus(errno, "listing", path);
  std::vector<std::string> names;
  while (const dirent* entry = readdir(entries)) {
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) names.emplace_back(entry->d_name);
  }
  closedir(entries);
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
  const std::string prefix = absl::StrCat(absl::StripSuffix(root, "/"), "/");
  bool climbs = false;
  for (absl::string_view part : absl::StrSplit(path, '/')) climbs = climbs || part == "..";
  if (root.empty() || climbs || !absl::StartsWith(path, prefix) || path.size() == prefix.size()) {
    return absl::InvalidArgumentError(absl::StrCat("refusing to remove ", path, ": it is not below ", root));
  }
  return RemoveBelow(AT_FDCWD, path.c_str(), path);
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace muster
