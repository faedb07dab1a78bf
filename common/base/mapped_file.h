// A file mapped read-only into memory, whole. The kernel pages it in and out; nothing is allocated.
//
// Owned by whoever reads; immutable after Open, so any thread may read. Whoever truncates the file under a live map
// kills the process with SIGBUS when what is gone is read: Muster's own writers never do, they rename, and
// CheckUnchanged before a read finds others out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/file_descriptor.h"

namespace muster {

class MappedFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED, or FAILED_PRECONDITION for what is not a regular file. An empty file is a map of 0
  // bytes.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  absl::Span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_)}; }
  int64_t size() const { return size_; }  // bytes, as of Open

  // DATA_LOSS naming the file and the first byte concerned when it no longer has the size that it had at Open.
  absl::Status CheckUnchanged() const;

  // Tells the kernel that the file will be read once from front to back, as a checksum does.
  void AdviseSequential() const;

 private:
  MappedFile(std::string path, FileDescriptor file, const std::byte* data, int64_t size)
      : path_(std::move(path)), file_(std::move(file)), data_(data), size_(size) {}
  void Unmap();

  std::string path_;
  FileDescriptor file_;  // for its size, later
  const std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace muster
