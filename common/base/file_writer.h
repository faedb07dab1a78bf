// Writes a new file from front to back, counts its bytes and keeps their checksums.
//
// Owned by one writer and used by one thread. Until Finish() has succeeded the file is provisional: the destructor
// removes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/crc32.h"
#include "common/base/file_descriptor.h"

namespace muster {

class FileWriter {
 public:
  // Creates the file, or empties one that is there.
  static absl::StatusOr<FileWriter> Create(const std::string& path);

  FileWriter(FileWriter&&) noexcept = default;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();

  // Straight to the kernel, no buffer: callers hand over large runs. After an error only destruction makes sense.
  absl::Status Append(absl::Span<const std::byte> bytes);

  // fsync, then close. Does not make the name durable: see SyncDirectory.
  absl::Status Finish();

  const std::string& path() const { return path_; }
  const BlockChecksums& checksums() const { return checksums_; }  // of what is written so far, and how much it is

 private:
  FileWriter(std::string path, FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  FileDescriptor file_;  // invalid after Finish, or when moved from
  BlockChecksums checksums_;
};

}  // namespace muster
