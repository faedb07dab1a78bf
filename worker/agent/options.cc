#include "worker/agent/options.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/agent/process_stats.h"

namespace muster {
namespace {

constexpr int64_t kSmallestSlotBytes = int64_t{32} << 20;  // the libraries alone need most of it
constexpr int64_t kMostSlots = 1024;

std::string Hostname() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

// As the coordinator has it (server/cluster/worker_registry.cc).
bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= 63 && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  });
}

absl::Status Wrong(absl::string_view flag, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", why));
}

// Every slot may be full at once, so a host with less memory than that would have the kernel kill ranks.
absl::Status CheckMemory(const AgentOptions& options) {
  const int64_t host_bytes = HostMemoryBytes();
  const int64_t share_bytes = host_bytes / options.slots;
  if (options.slot_memory_bytes <= share_bytes) return absl::OkStatus();
  std::vector<std::string> fitting;
  if (const int64_t slots = host_bytes / options.slot_memory_bytes; slots > 0) {
    fitting.push_back(absl::StrCat("--slots ", slots));
  }
  if (share_bytes >= kSmallestSlotBytes) fitting.push_back(absl::StrCat("--slot-memory ", share_bytes >> 20, "MiB"));
  const double gibibytes = static_cast<double>(options.slot_memory_bytes) / (1 << 30);
  return Wrong(
      "--slots, --slot-memory",
      absl::StrFormat("%d of %.2f GiB are %.2f GiB, but this host has %.2f GiB; %s", options.slots, gibibytes,
                      static_cast<double>(options.slots) * gibibytes, static_cast<double>(host_bytes) / (1 << 30),
                      fitting.empty() ? "fewer slots of less memory would fit"
                                      : absl::StrCat(absl::StrJoin(fitting, " or "), " would fit")));
}

}  // namespace

absl::Status CheckAgentOptions(const AgentOptions& options) {
  if (options.coordinator.host.empty() || options.coordinator.port == 0) {
    return Wrong("--coordinator",
                 "where musterd listens is needed, as in --coordinator 127.0.0.1:7070 or MUSTER_COORDINATOR");
  }
  if (options.slots < 1 || options.slots > kMostSlots) {
    return Wrong("--slots", absl::StrCat(options.slots, " is not between 1 and ", kMostSlots));
  }
  if (options.slot_memory_bytes < kSmallestSlotBytes) {
    return Wrong("--slot-memory",
                 absl::StrCat(options.slot_memory_bytes, " bytes are too few for a rank; 32MiB is the least"));
  }
  MUSTER_RETURN_IF_ERROR(CheckMemory(options));
  if (!IsName(options.name)) {
    return Wrong("--name",
                 absl::StrCat("\"", options.name, "\" is not a name: up to 63 letters, digits, '-', '_' and '.'"));
  }
  if (access(options.rank_program.c_str(), X_OK) != 0) {
    return Wrong("--rank-program", absl::StrCat(options.rank_program, " is not a program that can be run"));
  }
  std::error_code error;
  for (const auto& [flag, path] : {std::pair<const char*, const std::string&>{"--data-root", options.data_root},
                                   {"--checkpoint-root", options.checkpoint_root}}) {
    if (!std::filesystem::is_directory(path, error)) return Wrong(flag, absl::StrCat(path, " is not a directory"));
  }
  return absl::OkStatus();
}

void FillAgentDefaults(const std::string& program, AgentOptions& options) {
  if (options.name.empty()) options.name = Hostname();
  if (options.address.empty()) options.address = options.coordinator.IsLoopback() ? "127.0.0.1" : Hostname();
  if (options.rank_program.empty()) {
    options.rank_program = (std::filesystem::path(program).parent_path() / "muster-rank").string();
  }
  if (options.state_dir.empty()) {
    options.state_dir =
        (std::filesystem::temp_directory_path() / absl::StrCat("muster-worker-", options.name)).string();
  }
  std::error_code error;  // what cannot be made absolute is refused by the check
  for (std::string* path : {&options.data_root, &options.checkpoint_root, &options.state_dir, &options.rank_program}) {
    if (path->empty()) path->assign(1, '.');
    *path = std::filesystem::absolute(*path, error).lexically_normal().string();
  }
}

}  // namespace muster
