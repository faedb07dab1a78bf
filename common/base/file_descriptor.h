// Owns an open file descriptor and closes it. Movable; used by one thread at a time.
#pragma once

#include <utility>

namespace muster {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~FileDescriptor() { Close(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

  // Closes without looking at the result: whoever must know that bytes are on disk has called fsync before.
  void Close();

 private:
  int fd_ = -1;
};

}  // namespace muster
