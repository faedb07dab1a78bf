#include "worker/agent/process_stats.h"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace muster {

int64_t ResidentBytes(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/statm"));
  int64_t size_pages = 0;
  int64_t resident_pages = 0;
  if (!(file >> size_pages >> resident_pages)) return 0;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

int64_t PeakResidentBytes(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("VmHWM:", 0) != 0) continue;
    int64_t kibibytes = 0;
    return std::istringstream(line.substr(6)) >> kibibytes ? kibibytes << 10 : 0;
  }
  return 0;
}

int64_t HostMemoryBytes() { return sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE); }

int64_t OutOfMemoryKills() {
  std::ifstream file("/proc/vmstat");
  std::string name;
  int64_t value = 0;
  while (file >> name >> value) {
    if (name == "oom_kill") return value;
  }
  return 0;
}

}  // namespace muster
