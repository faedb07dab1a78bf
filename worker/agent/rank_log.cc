#include "worker/agent/rank_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kLastLines = 20;
constexpr size_t kLongestLine = 16 << 10;

std::string OlderHalf(const std::string& path) { return path + ".1"; }

int OpenForAppend(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankLog>> RankLog::Open(const std::string& path, int64_t limit_bytes) {
  FileDescriptor file(OpenForAppend(path));
  struct stat info {};
  if (!file.valid() || fstat(file.get(), &info) != 0) return ErrnoStatus(errno, "opening the log", path);
  return std::unique_ptr<RankLog>(new RankLog(path, limit_bytes, std::move(file), info.st_size));
}

std::string RankLog::Append(absl::string_view bytes) {
  partial_.append(bytes.data(), bytes.size());
  std::string lines;
  const size_t end = partial_.rfind('\n');
  if (end != std::string::npos) {
    lines = partial_.substr(0, end + 1);
    partial_.erase(0, end + 1);
  }
  if (partial_.size() > kLongestLine) {
    absl::StrAppend(&lines, partial_, "\n");
    partial_.clear();
  }
  Store(lines);
  Remember(lines);
  return lines;
}

std::string RankLog::Finish() { return partial_.empty() ? "" : Append("\n"); }

void RankLog::Store(absl::string_view lines) {
  if (lines.empty()) return;
  if (bytes_ > 0 && bytes_ + static_cast<int64_t>(lines.size()) > limit_bytes_ / 2) {
    std::rename(path_.c_str(), OlderHalf(path_).c_str());
    file_ = FileDescriptor(OpenForAppend(path_));
    bytes_ = 0;
  }
  std::string text;
  if (lost_bytes_ > 0) absl::StrAppend(&text, "[", lost_bytes_, " bytes of log were lost: the disk refused them]\n");
  absl::StrAppend(&text, lines);
  const ssize_t written = file_.valid() ? write(file_.get(), text.data(), text.size()) : -1;
  if (written != static_cast<ssize_t>(text.size())) {
    lost_bytes_ += static_cast<int64_t>(lines.size());
    return;
  }
  lost_bytes_ = 0;
  bytes_ += written;
}

void RankLog::Remember(absl::string_view lines) {
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    last_lines_.emplace_back(lines.substr(0, end));
    if (last_lines_.size() > kLastLines) last_lines_.pop_front();
    lines.remove_prefix(end + 1);
  }
}

absl::StatusOr<std::string> ReadRankLog(const std::string& path, int64_t lines) {
  MUSTER_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  if (PathExists(OlderHalf(path))) {
    MUSTER_ASSIGN_OR_RETURN(std::string older, ReadFile(OlderHalf(path)));
    text = older + text;
  }
  if (lines == 0) return text;
  size_t begin = text.size();
  for (int64_t i = 0; i <= lines; ++i) {  // the newest line's own end is the first found
    if (begin == 0) return text;
    begin = text.rfind('\n', begin - 1);
    if (begin == std::string::npos) return text;
  }
  return text.substr(begin + 1);
}

}  // namespace muster
