// tokenizer.json, and vocab.json with merges.txt (cut at the first zero byte): whatever the bytes, an error or a
// tokenizer whose tokens of a text give the text again.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "common/formats/bpe_tokenizer.h"

namespace {

void Use(absl::StatusOr<muster::BpeVocabulary> vocabulary) {
  if (!vocabulary.ok()) return;
  const bool composes = vocabulary->compose;
  const bool has_added = !vocabulary->added.empty();
  const auto tokenizer = muster::BpeTokenizer::Make(*std::move(vocabulary));
  if (!tokenizer.ok()) return;
  const std::string text = "It's 12 \xFFwords,\n and\tmore  ";
  const auto tokens = muster::EncodeAll(**tokenizer, text);
  if (!tokens.ok()) return;
  const auto decoded = (*tokenizer)->Decode(*tokens);
  if (!decoded.ok() || (!composes && !has_added && *decoded != text)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  Use(muster::ParseTokenizerJson(input, "", "fuzz"));
  const size_t cut = input.find('\0');
  if (cut == absl::string_view::npos) return 0;
  Use(muster::ParseVocabAndMerges(input.substr(0, cut), input.substr(cut + 1), "", "fuzz"));
  return 0;
}
