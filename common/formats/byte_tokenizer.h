// Every byte is a token of its own value; the end of a document is token 256, so a model of byte tokens has a
// vocabulary of 257. Needs no vocabulary file, takes any input, and its loss in nats per token is the text's nats per
// byte.
#pragma once

#include "common/formats/tokenizer.h"

namespace muster {

inline constexpr int32_t kByteEndOfDocument = 256;
inline constexpr int64_t kByteVocab = 257;

class ByteTokenizer : public Tokenizer {
 public:
  int64_t vocab() const override { return kByteVocab; }
  int32_t end_of_document() const override { return kByteEndOfDocument; }
  absl::Status Encode(absl::string_view text, Sink sink) const override;
  absl::StatusOr<std::string> Decode(absl::Span<const int32_t> tokens) const override;
  size_t LastCut(absl::string_view text) const override { return text.size(); }
  // The same tokenizer as a byte-level BPE without merges, which is what `transformers` can load.
  std::vector<TokenizerFile> Files() const override;
};

}  // namespace muster
