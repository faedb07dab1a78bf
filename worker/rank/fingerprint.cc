#include "worker/rank/fingerprint.h"

#include <oneapi/dnnl/dnnl.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/base/instruction_set.h"

namespace muster {

std::map<std::string, std::string> Fingerprint(const EngineConfig& config) {
  const dnnl_version_t* dnnl = dnnl_version();
  const char* most = std::getenv("DNNL_MAX_CPU_ISA");
  return {
      {"muster", MUSTER_VERSION},
      {"onednn", absl::StrCat(dnnl->major, ".", dnnl->minor, ".", dnnl->patch)},
      {"instruction_set", InstructionSet()},
      {"instruction_set_limit", most == nullptr ? "" : most},
      {"threads_per_rank", absl::StrCat(config.layout.threads_per_rank)},
      {"data", absl::StrCat(config.layout.data)},
      {"tensor", absl::StrCat(config.layout.tensor)},
      {"micro_batch", absl::StrCat(config.layout.micro_batch)},
      {"precision", config.layout.precision == Precision::kFp32 ? "fp32" : "bf16"},
      {"reduction", "rank_order"},
  };
}

}  // namespace muster
