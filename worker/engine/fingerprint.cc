#include "worker/engine/fingerprint.h"

#include "absl/strings/str_cat.h"
#include "common/base/instruction_set.h"
#include "worker/kernels/context.h"

namespace muster {

std::map<std::string, std::string> Fingerprint(const EngineConfig& config) {
  std::map<std::string, std::string> fingerprint = {
      {"muster", MUSTER_VERSION},
      {"instruction_set", InstructionSet()},
      {"threads_per_rank", absl::StrCat(config.layout.threads_per_rank)},
      {"data", absl::StrCat(config.layout.data)},
      {"tensor", absl::StrCat(config.layout.tensor)},
      {"micro_batch", absl::StrCat(config.layout.micro_batch)},
      {"accumulation_steps", absl::StrCat(config.layout.accumulation_steps)},
      {"precision", PrecisionName(config.layout.precision)},
      {"loss_chunk_tokens", absl::StrCat(config.layout.loss_chunk_tokens)},
      {"reduction", "rank_order"},
  };
  fingerprint.merge(KernelLibraries());
  return fingerprint;
}

}  // namespace muster
