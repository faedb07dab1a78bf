#include "common/formats/tokenizer.h"

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace muster {

absl::StatusOr<std::vector<int32_t>> EncodeAll(const Tokenizer& tokenizer, absl::string_view text) {
  std::vector<int32_t> all;
  const auto append = [&all](absl::Span<const int32_t> tokens) {
    all.insert(all.end(), tokens.begin(), tokens.end());
    return absl::OkStatus();
  };
  MUSTER_RETURN_IF_ERROR(tokenizer.Encode(text, append));
  return all;
}

std::string TokenizerDirectory(absl::string_view dataset_prefix) { return absl::StrCat(dataset_prefix, ".tokenizer"); }

absl::Status WriteTokenizer(const Tokenizer& tokenizer, const std::string& directory) {
  MUSTER_RETURN_IF_ERROR(MakeDirectories(directory));
  for (const TokenizerFile& file : tokenizer.Files()) {
    MUSTER_RETURN_IF_ERROR(WriteFileDurably(absl::StrCat(directory, "/", file.name), file.contents));
  }
  return absl::OkStatus();
}

}  // namespace muster
