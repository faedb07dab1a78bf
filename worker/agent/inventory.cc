#include "worker/agent/inventory.h"

#include <unistd.h>

#include <fstream>
#include <string>

#include "common/base/instruction_set.h"
#include "worker/agent/rank_command.h"

namespace muster {
namespace {

std::string FirstLine(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

v1::Inventory MakeInventory(const AgentOptions& options, const std::string& version, const HostPort& metrics) {
  v1::Inventory inventory;
  for (int64_t slot = 0; slot < options.slots; ++slot) {
    v1::Device& device = *inventory.add_devices();
    device.set_index(slot);
    device.set_kind("cpu");
    device.set_model("CPU slot");
    device.set_memory_bytes(options.slot_memory_bytes);
    device.set_numa_node(-1);
  }
  char hostname[256] = {};
  if (gethostname(hostname, sizeof(hostname) - 1) == 0) inventory.set_hostname(hostname);
  inventory.set_version(version);
  inventory.set_cores(sysconf(_SC_NPROCESSORS_ONLN));
  inventory.set_memory_bytes(sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
  inventory.set_instruction_set(InstructionSet());
  inventory.set_address(options.address);
  inventory.set_metrics_address(metrics.ToString());
  if (!FindProgram("nsys").empty()) inventory.add_profilers("nsys");
  inventory.set_boot_id(FirstLine("/proc/sys/kernel/random/boot_id"));
  return inventory;
}

}  // namespace muster
