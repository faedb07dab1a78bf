#include "common/base/format_seconds.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_format.h"

namespace muster {

std::string FormatSeconds(double seconds) {
  if (seconds < 59.95) return seconds < 9.995 ? absl::StrFormat("%.2f s", seconds) : absl::StrFormat("%.1f s", seconds);
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) return absl::StrFormat("%d min %02d s", whole / 60, whole % 60);
  return absl::StrFormat("%d h %02d min", whole / 3600, whole % 3600 / 60);
}

}  // namespace muster
