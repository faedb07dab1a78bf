#include "common/base/file_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/base/file.h"

namespace muster {
namespace {

// Checksum and write go over the same piece while it is in the cache.
constexpr size_t kPieceBytes = size_t{1} << 20;

absl::Status WriteAll(int fd, absl::Span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, "writing", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FileWriter> FileWriter::Create(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.valid()) return ErrnoStatus(errno, "creating", path);
  return FileWriter(path, std::move(file));
}

FileWriter::~FileWriter() {
  if (file_.valid()) unlink(path_.c_str());
}

absl::Status FileWriter::Append(absl::Span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const absl::Span<const std::byte> piece = bytes.subspan(0, std::min(kPieceBytes, bytes.size()));
    checksums_.Append(piece);
    if (absl::Status status = WriteAll(file_.get(), piece, path_); !status.ok()) return status;
    bytes.remove_prefix(piece.size());
  }
  return absl::OkStatus();
}

absl::Status FileWriter::Finish() {
  if (fsync(file_.get()) != 0) return ErrnoStatus(errno, "writing", path_);
  file_ = FileDescriptor();
  return absl::OkStatus();
}

}  // namespace muster
