#include "common/base/file_descriptor.h"

#include <unistd.h>

namespace muster {

void FileDescriptor::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

}  // namespace muster
