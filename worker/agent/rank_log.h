// The log of one rank on disk: whole lines in two files, PATH and PATH.1 (the older half), never more than the limit
// together.
//
// Owned by the log spool; on the loop.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/file_descriptor.h"

namespace muster {

class RankLog {
 public:
  // Continues a log that is there.
  static absl::StatusOr<std::unique_ptr<RankLog>> Open(const std::string& path, int64_t limit_bytes);

  // Takes bytes as a pipe gives them, cut anywhere. Returns the lines that they completed, ready to be passed on. A
  // line longer than 16 KiB is cut. Bytes that the disk refuses are lost, and the next line that it takes says how
  // many.
  std::string Append(absl::string_view bytes);

  // Completes a last line without an end.
  std::string Finish();

  // The newest lines, oldest first, 20 at the most.
  std::vector<std::string> last_lines() const { return {last_lines_.begin(), last_lines_.end()}; }

 private:
  RankLog(std::string path, int64_t limit_bytes, FileDescriptor file, int64_t bytes)
      : path_(std::move(path)), limit_bytes_(limit_bytes), file_(std::move(file)), bytes_(bytes) {}

  void Store(absl::string_view lines);
  void Remember(absl::string_view lines);

  const std::string path_;
  const int64_t limit_bytes_;
  FileDescriptor file_;
  int64_t bytes_ = 0;       // in PATH
  int64_t lost_bytes_ = 0;  // not on disk, not yet told
  std::string partial_;
  std::deque<std::string> last_lines_;
};

// The newest `lines` whole lines of the log at `path` (0: all that is kept). NOT_FOUND when there is none.
absl::StatusOr<std::string> ReadRankLog(const std::string& path, int64_t lines);

}  // namespace muster
