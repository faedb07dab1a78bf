#include "common/base/instruction_set.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "absl/strings/str_split.h"

namespace muster {
namespace {

std::string CpuFlags() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("flags", 0) == 0) return line;
  }
  return "";
}

}  // namespace

std::string InstructionSet() {
  const std::vector<std::string> flags = absl::StrSplit(CpuFlags(), ' ');
  const auto has = [&](const char* flag) { return std::find(flags.begin(), flags.end(), flag) != flags.end(); };
  if (has("amx_bf16")) return "amx_bf16";
  if (has("avx512_bf16")) return "avx512_bf16";
  if (has("avx512bw") && has("avx512vl")) return "avx512";
  return has("avx2") ? "avx2" : "sse4.2";
}

}  // namespace muster
