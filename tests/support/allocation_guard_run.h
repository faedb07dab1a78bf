// Runs programs under the allocation guard (tests/support/allocation_guard) and reads what it found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

// One allocation above 1 MiB.
struct LargeAllocation {
  bool allowed = false;
  std::string program;
  int64_t process = 0;
  std::string function;  // "malloc", "mmap"
  int64_t bytes = 0;
  std::string name;    // of the allowance or the scope, "-" without
  std::string frames;  // from the caller outwards, separated by blanks
};

struct AllocationGuardOptions {
  std::string report;      // file to append to
  bool enforce = false;    // end the process at its first finding
  std::string program;     // watch only programs of this name; empty for all
  std::string allowances;  // file; empty for tests/support/allocation_guard/allowances.txt
};

// "NAME=value" entries for the environment of a child process; children of it inherit the guard.
std::vector<std::string> AllocationGuardEnvironment(const AllocationGuardOptions& options);

// Empty when the guard met no allocation above 1 MiB. Aborts on a line that the guard cannot have written.
std::vector<LargeAllocation> ReadAllocationReport(const std::string& path);

}  // namespace muster
