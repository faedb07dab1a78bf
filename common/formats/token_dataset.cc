#include "common/formats/token_dataset.h"

#include "absl/strings/match.h"
#include "common/base/status_macros.h"
#include "common/formats/indexed_dataset.h"
#include "common/formats/llmc_dataset.h"

namespace muster {

int64_t TokenDataset::DocumentOf(int64_t token) const {
  int64_t low = 0;  // begins at or before the token
  int64_t high = documents();
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (DocumentBegin(middle) <= token ? low : high) = middle;
  }
  return low;
}

absl::StatusOr<std::unique_ptr<TokenDataset>> OpenTokenDataset(const std::string& path, bool documents_wanted) {
  if (absl::EndsWith(path, ".bin")) {
    MUSTER_ASSIGN_OR_RETURN(LlmcDataset dataset, LlmcDataset::Open(path, documents_wanted));
    return std::make_unique<LlmcDataset>(std::move(dataset));
  }
  MUSTER_ASSIGN_OR_RETURN(IndexedDataset dataset, IndexedDataset::Open(path));
  return std::make_unique<IndexedDataset>(std::move(dataset));
}

}  // namespace muster
