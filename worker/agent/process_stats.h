// What the kernel says about processes. Linux only.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace muster {

// Resident bytes of a process now; 0 when it is gone, or is on its way out and has let go of its memory.
int64_t ResidentBytes(pid_t pid);

// The most bytes that were resident since the process became its program; 0 as above.
int64_t PeakResidentBytes(pid_t pid);

// The memory of this host, bytes.
int64_t HostMemoryBytes();

// How many processes the kernel has killed for memory since boot; 0 where it does not say.
int64_t OutOfMemoryKills();

}  // namespace muster
