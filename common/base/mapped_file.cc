#include "common/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/file_descriptor.h"

namespace muster {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus(errno, "opening", path);
  struct stat info;
  if (fstat(file.get(), &info) != 0) return ErrnoStatus(errno, "examining", path);
  if (!S_ISREG(info.st_mode)) return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
  if (info.st_size == 0) return MappedFile(path, std::move(file), nullptr, 0);
  void* data = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return ErrnoStatus(errno, "mapping", path);
  return MappedFile(path, std::move(file), static_cast<const std::byte*>(data), info.st_size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::move(other.file_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    Unmap();
    path_ = std::move(other.path_);
    file_ = std::move(other.file_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

MappedFile::~MappedFile() { Unmap(); }

void MappedFile::Unmap() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), static_cast<size_t>(size_));
  data_ = nullptr;
}

absl::Status MappedFile::CheckUnchanged() const {
  struct stat info;
  if (fstat(file_.get(), &info) != 0) return ErrnoStatus(errno, "examining", path_);
  if (info.st_size == size_) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path_, ": byte ", std::min<int64_t>(info.st_size, size_), ": the file has ",
                                          info.st_size, " bytes now and had ", size_, " when it was opened: it was ",
                                          info.st_size < size_ ? "truncated" : "written to", " while in use"));
}

void MappedFile::AdviseSequential() const {
  if (data_ != nullptr) madvise(const_cast<std::byte*>(data_), static_cast<size_t>(size_), MADV_SEQUENTIAL);
}

}  // namespace muster
