// What the kernel says about processes. Linux only.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace muster {

// Resident bytes of a process; 0 when it is gone.
int64_t ResidentBytes(pid_t pid);

// How many processes the kernel has killed for memory since boot; 0 where it does not say.
int64_t OutOfMemoryKills();

}  // namespace muster
