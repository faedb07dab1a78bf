// Byte-level byte-pair encoding: GPT-2's vocab.json and merges.txt, or a tokenizer.json of Hugging Face's `tokenizers`
// with a BPE model over the byte alphabet (GPT-2, Llama-3, Qwen2 and their kin). What such a file can ask for beyond
// that is refused by name.
//
// Text is first cut at the added tokens that it spells, then split into words (pre_tokenizer.h), and each word's bytes
// are merged: of all neighbours that have a merge the one of lowest rank first, the leftmost of equals (Sennrich et al.
// 2016, in the order of GPT-2's encoder.py). Immutable; any thread may call.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/formats/pre_tokenizer.h"
#include "common/formats/tokenizer.h"

namespace muster {

// A token that the text may spell, and that no word is merged into.
struct AddedToken {
  std::string text;
  int32_t id = 0;
  bool special = false;  // left out by Decode
};

// What the files say, before it is checked and indexed.
struct BpeVocabulary {
  std::vector<std::string> words;                   // by token, in the byte alphabet; "" for a number that is no token
  std::vector<std::pair<int32_t, int32_t>> merges;  // tokens, in the order of their rank
  std::vector<AddedToken> added;
  std::vector<std::string> split_expressions;
  bool whole_words = false;  // a word that is a token is not merged (tokenizer.json's ignore_merges)
  bool compose = false;      // text is brought to Unicode's composed form first (NFC)
  int32_t end_of_document = 0;
  std::vector<TokenizerFile> files;
};

class BpeTokenizer : public Tokenizer {
 public:
  // INVALID_ARGUMENT when a byte has no token, a merge makes a word that is none, or an expression is wrong.
  static absl::StatusOr<std::unique_ptr<BpeTokenizer>> Make(BpeVocabulary vocabulary);

  int64_t vocab() const override { return static_cast<int64_t>(text_of_.size()); }
  int32_t end_of_document() const override { return vocabulary_.end_of_document; }
  absl::Status Encode(absl::string_view text, Sink sink) const override;
  absl::StatusOr<std::string> Decode(absl::Span<const int32_t> tokens) const override;
  size_t LastCut(absl::string_view text) const override;
  std::vector<TokenizerFile> Files() const override { return vocabulary_.files; }

 private:
  struct Merge {
    int32_t rank;
    int32_t token;
  };
  struct Scratch;

  BpeTokenizer(BpeVocabulary vocabulary, PreTokenizer pre_tokenizer)
      : vocabulary_(std::move(vocabulary)), pre_tokenizer_(std::move(pre_tokenizer)) {}
  absl::Status IndexWords();
  absl::Status IndexMerges();
  void IndexAdded();
  const AddedToken* AddedAt(absl::string_view text) const;
  absl::Status EncodePlain(absl::string_view text, Scratch& scratch) const;
  void EncodeWord(absl::string_view word, Scratch& scratch) const;
  const Merge* FindMerge(int32_t left, int32_t right) const;

  BpeVocabulary vocabulary_;
  PreTokenizer pre_tokenizer_;
  std::vector<std::string> text_of_;  // by token, bytes
  std::vector<bool> hidden_;          // by token: special
  std::array<int32_t, 256> byte_tokens_{};
  absl::flat_hash_map<uint64_t, Merge> merges_;                   // by left token << 32 | right token
  absl::flat_hash_map<std::string, int32_t> token_of_;            // by bytes; only with whole_words
  std::array<std::vector<AddedToken>, 256> added_by_first_byte_;  // longest first
};

// The files of `directory`: tokenizer.json, or vocab.json and merges.txt, and beside them tokenizer_config.json, which
// names the end-of-document token (its eos_token). NOT_FOUND naming what was looked for; INVALID_ARGUMENT naming file
// and JSON path, or file and line.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadBpeTokenizer(const std::string& directory);

// The same from contents; `config` may be empty. What LoadBpeTokenizer does once it has read.
absl::StatusOr<BpeVocabulary> ParseTokenizerJson(absl::string_view json, absl::string_view config,
                                                 const std::string& directory);
absl::StatusOr<BpeVocabulary> ParseVocabAndMerges(absl::string_view vocab, absl::string_view merges,
                                                  absl::string_view config, const std::string& directory);

}  // namespace muster
