// A device without memory that remembers the ranges it was given: for tests of what a profiler would see.
#pragma once

#include <string>
#include <vector>

#include "worker/tensor/device.h"

namespace muster {

class RangeDevice : public Device {
 public:
  absl::StatusOr<void*> Allocate(MemorySpace, int64_t) override { return absl::UnimplementedError("has no memory"); }
  void Free(MemorySpace, void*, int64_t) override {}
  void CopyToDevice(void*, const void*, int64_t) override {}
  void CopyToHost(void*, const void*, int64_t) override {}
  absl::Status Synchronize() override { return absl::OkStatus(); }
  void BeginRange(const char* name) override { ranges.push_back(std::string(++depth, '>') + name); }
  void EndRange() override { --depth; }

  std::vector<std::string> ranges;  // in the order of their beginnings, one '>' a level
  size_t depth = 0;
};

}  // namespace muster
