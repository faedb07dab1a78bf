#include "common/formats/byte_tokenizer.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/formats/byte_alphabet.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

constexpr char kEndOfDocumentText[] = "<|endoftext|>";

}  // namespace

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

absl::StatusOr<std::string> ByteTokenizer::Decode(absl::Span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    if (token < 0 || token >= kByteVocab) {
      return absl::OutOfRangeError(absl::StrCat("token ", token, " is outside the vocabulary of ", kByteVocab));
    }
    if (token != kByteEndOfDocument) text.push_back(static_cast<char>(token));
  }
  return text;
}

std::vector<TokenizerFile> ByteTokenizer::Files() const {
  using Json = nlohmann::ordered_json;
  const Json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  Json vocab = Json::object();
  for (size_t byte = 0; byte < 256; ++byte) vocab[ByteAlphabet()[byte]] = byte;
  const Json end_of_document = {
      {"id", kByteEndOfDocument}, {"content", kEndOfDocumentText}, {"single_word", false}, {"lstrip", false},
      {"rstrip", false},          {"normalized", false},           {"special", true}};
  const Json tokenizer = {{"version", "1.0"},
                          {"truncation", nullptr},
                          {"padding", nullptr},
                          {"added_tokens", Json::array({end_of_document})},
                          {"normalizer", nullptr},
                          {"pre_tokenizer", byte_level},
                          {"post_processor", nullptr},
                          {"decoder", byte_level},
                          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array()}}}};
  const Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                       {"eos_token", kEndOfDocumentText},
                       {"clean_up_tokenization_spaces", false}};
  return {{"tokenizer.json", tokenizer.dump(1)}, {"tokenizer_config.json", config.dump(1)}};
}

}  // namespace muster
