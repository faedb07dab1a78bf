// The processor as a device: every space is main memory, and nothing is asynchronous.
#pragma once

#include <memory>

#include "worker/tensor/device.h"

namespace muster {

// Blocks are anonymous pages, zeroed by the kernel and touched at once, so that a machine that is short of memory says
// so when the arena is made and not in the middle of a step. Thread-safe.
std::unique_ptr<Device> MakeCpuDevice();

}  // namespace muster
