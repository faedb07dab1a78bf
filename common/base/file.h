// Files as the rest of Muster needs them: read whole, written so that a crash leaves the old content or the new one,
// and removed only below a root that the caller names. Every error is an absl::Status that says what failed and on
// which path: "no space left on device writing /data/ckpt/step-20.tmp/manifest.json".
//
// Free functions, no state: any thread may call them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// The status of a failed system call. `doing` is a verb: "opening", "writing". Codes are those of
// absl::ErrnoToStatusCode but for a full device, a spent quota and a file over its size limit, which all are
// RESOURCE_EXHAUSTED.
absl::Status ErrnoStatus(int error, absl::string_view doing, absl::string_view path);

// The whole of a regular file. FAILED_PRECONDITION when it is larger than `limit_bytes`, so that a wrong path cannot
// eat the memory.
inline constexpr int64_t kReadFileLimitBytes = int64_t{256} << 20;
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t limit_bytes = kReadFileLimitBytes);

// Under a temporary name beside it, fsynced, renamed, the directory fsynced. After an error the temporary file is gone
// and whatever was at `path` is untouched.
absl::Status WriteFileDurably(const std::string& path, absl::string_view contents);

// Bytes of a regular file; NOT_FOUND without one, FAILED_PRECONDITION for anything that is not a regular file.
absl::StatusOr<int64_t> FileSize(const std::string& path);

bool PathExists(const std::string& path);

// As `mkdir -p`.
absl::Status MakeDirectories(const std::string& path);

// Names in a directory, without "." and "..", sorted.
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

// Renames within one file system and makes the new name durable. `from` and `to` may lie in different directories.
absl::Status RenameDurably(const std::string& from, const std::string& to);

// Makes the names in a directory durable.
absl::Status SyncDirectory(const std::string& path);

// Removes `path` and all below it, never following a symbolic link. Nothing there is no error. INVALID_ARGUMENT unless
// `path`, as written, lies strictly below `root` and has no ".." in it: a deletion that went astray would take a user's
// data.
absl::Status RemoveTree(const std::string& path, const std::string& root);

// The same for what others may look for: `path` is first renamed to PATH.deleting, so that nobody finds half of it, and
// then that is removed, with what an earlier removal left there when it was cut short.
inline constexpr char kDeletingSuffix[] = ".deleting";
absl::Status RemoveTreeAtOnce(const std::string& path, const std::string& root);

// Parent of a path: "a/b" -> "a", "b" -> ".", "/b" -> "/".
std::string DirectoryOf(const std::string& path);

}  // namespace muster
