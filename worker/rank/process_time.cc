#include "worker/rank/process_time.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace muster {
namespace {

constexpr size_t kStartTimeField = 19;  // starttime of proc(5), counted from behind the name

}  // namespace

absl::Duration ProcessStart() {
  std::ifstream file("/proc/self/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return absl::ZeroDuration();
  const std::vector<std::string> fields = absl::StrSplit(text.substr(name_end + 2), ' ');
  int64_t ticks = 0;
  if (fields.size() <= kStartTimeField || !absl::SimpleAtoi(fields[kStartTimeField], &ticks))
    return absl::ZeroDuration();
  return absl::Seconds(1) * ticks / sysconf(_SC_CLK_TCK);
}

}  // namespace muster
