#include "tests/support/allocation_guard_run.h"

#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"

namespace muster {

std::vector<std::string> AllocationGuardEnvironment(const AllocationGuardOptions& options) {
  std::vector<std::string> environment = {
      absl::StrCat("LD_PRELOAD=", MUSTER_ALLOCATION_GUARD_LIBRARY),
      absl::StrCat("MUSTER_ALLOCATION_REPORT=", options.report),
      absl::StrCat("MUSTER_ALLOCATION_ALLOWANCES=",
                   options.allowances.empty() ? MUSTER_ALLOCATION_GUARD_ALLOWANCES : options.allowances),
  };
  if (options.enforce) environment.push_back("MUSTER_ALLOCATION_ENFORCE=1");
  if (!options.program.empty()) environment.push_back(absl::StrCat("MUSTER_ALLOCATION_PROGRAM=", options.program));
  return environment;
}

std::vector<LargeAllocation> ReadAllocationReport(const std::string& path) {
  std::vector<LargeAllocation> allocations;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    LargeAllocation allocation;
    MUSTER_CHECK(fields.size() == 7 && (fields[0] == "ALLOWED" || fields[0] == "FINDING") &&
                     absl::SimpleAtoi(fields[2], &allocation.process) && absl::SimpleAtoi(fields[4], &allocation.bytes),
                 path, ": ", line);
    allocation.allowed = fields[0] == "ALLOWED";
    allocation.program = fields[1];
    allocation.function = fields[3];
    allocation.name = fields[5];
    allocation.frames = fields[6];
    allocations.push_back(allocation);
  }
  return allocations;
}

}  // namespace muster
