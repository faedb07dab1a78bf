// Sizes as people read them, in the units in which a job file gives them.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

// "812 B", "61.2 MiB", "40.0 GiB": units of 1024, one digit behind the point below 100.
std::string FormatBytes(int64_t bytes);

}  // namespace muster
