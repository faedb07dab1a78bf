// Tokenizers by name and from directories (tokenizer.h).
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/formats/bpe_tokenizer.h"
#include "common/formats/byte_tokenizer.h"

namespace muster {

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& directory) {
  return LoadBpeTokenizer(directory);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(absl::string_view name) {
  if (name == "bytes") return std::make_unique<ByteTokenizer>();
  absl::string_view rest = name;
  if (absl::ConsumePrefix(&rest, "bpe:") && !rest.empty()) return LoadBpeTokenizer(std::string(rest));
  return absl::InvalidArgumentError(absl::StrCat("unknown tokenizer \"", name, "\"; known are bytes and bpe:DIR"));
}

}  // namespace muster
