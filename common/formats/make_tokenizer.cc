// Tokenizers by name and from directories (tokenizer.h).
#include "absl/strings/str_cat.h"
#include "common/formats/byte_tokenizer.h"

namespace muster {

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(absl::string_view name) {
  if (name == "bytes") return std::make_unique<ByteTokenizer>();
  return absl::InvalidArgumentError(absl::StrCat("unknown tokenizer \"", name, "\"; this version knows: bytes"));
}

}  // namespace muster
