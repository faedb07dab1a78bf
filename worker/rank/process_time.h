// How long this process has lived: the part of a rank's start that no code of its own can time. Linux only.
#pragma once

#include "absl/time/time.h"

namespace muster {

// Since boot, when this process was forked; to a hundredth of a second.
absl::Duration ProcessStart();

}  // namespace muster
