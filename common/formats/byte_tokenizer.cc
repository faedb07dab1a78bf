#include "common/formats/byte_tokenizer.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {

absl::Status ByteTokenizer::Encode(absl::string_view text, Sink sink) const {
  std::array<int32_t, 16384> run;
  while (!text.empty()) {
    const size_t count = std::min(run.size(), text.size());
    for (size_t i = 0; i < count; ++i) run[i] = static_cast<unsigned char>(text[i]);
    MUSTER_RETURN_IF_ERROR(sink(absl::MakeConstSpan(run.data(), count)));
    text.remove_prefix(count);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(absl::string_view name) {
  if (name == "bytes") return std::make_unique<ByteTokenizer>();
  return absl::InvalidArgumentError(absl::StrCat("unknown tokenizer \"", name, "\"; this version knows: bytes"));
}

}  // namespace muster
