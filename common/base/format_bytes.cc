#include "common/base/format_bytes.h"

#include <cstddef>
#include <iterator>

#include "absl/strings/str_format.h"

namespace muster {

std::string FormatBytes(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return absl::StrFormat("%d B", bytes);
  return value < 99.95 ? absl::StrFormat("%.1f %s", value, kUnits[unit])
                       : absl::StrFormat("%.0f %s", value, kUnits[unit]);
}

}  // namespace muster
