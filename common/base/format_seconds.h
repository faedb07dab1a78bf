// Durations as people read them.
#pragma once

#include <string>

namespace muster {

// "0.37 s", "12.3 s", "5 min 12 s", "3 h 05 min". `seconds` is finite and not negative.
std::string FormatSeconds(double seconds);

}  // namespace muster
