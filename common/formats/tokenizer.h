// Turns text into tokens and back. An implementation is immutable after construction: any thread may call.
//
// A tokenizer that made a dataset is kept beside it, in the directory TokenizerDirectory(prefix), in the files that
// Hugging Face's `transformers` reads: so sampling and export find it, and a tokenizer taken from there can be used
// here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster {

// One file of a tokenizer's directory.
struct TokenizerFile {
  std::string name;  // "tokenizer.json"
  std::string contents;
};

class Tokenizer {
 public:
  // Takes tokens in runs, in order; an error ends the encoding and is returned by Encode.
  using Sink = absl::FunctionRef<absl::Status(absl::Span<const int32_t>)>;

  virtual ~Tokenizer() = default;

  virtual int64_t vocab() const = 0;            // tokens are 0 .. vocab-1
  virtual int32_t end_of_document() const = 0;  // follows every document

  // The tokens of one document's text, without the end-of-document token.
  virtual absl::Status Encode(absl::string_view text, Sink sink) const = 0;

  // The text of tokens, bytes as the model wrote them: they may begin or end within a UTF-8 character. Special tokens
  // are left out. OUT_OF_RANGE for a token that is not in the vocabulary.
  virtual absl::StatusOr<std::string> Decode(absl::Span<const int32_t> tokens) const = 0;

  // The largest position of `text` at which a longer document may be cut so that its parts give the tokens of the
  // whole; 0 when there is none. Lets a document larger than memory be encoded, and by several threads.
  virtual size_t LastCut(absl::string_view text) const = 0;

  // What a directory has to hold for LoadTokenizer, and for `transformers`, to give this tokenizer again.
  virtual std::vector<TokenizerFile> Files() const = 0;
};

// All tokens of one text.
absl::StatusOr<std::vector<int32_t>> EncodeAll(const Tokenizer& tokenizer, absl::string_view text);

// PREFIX.tokenizer: where the tokenizer of a dataset is kept.
std::string TokenizerDirectory(absl::string_view dataset_prefix);

// Writes the tokenizer's files into a directory, which is made if need be.
absl::Status WriteTokenizer(const Tokenizer& tokenizer, const std::string& directory);

// From a directory of tokenizer files: tokenizer.json, or vocab.json and merges.txt (byte-level BPE). NOT_FOUND naming
// what was looked for; INVALID_ARGUMENT naming file and JSON path, line or byte of what is wrong or not supported.
// Links muster_tokenizers, as does MakeTokenizer.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& directory);

// By the name that `muster data tokenize --tokenizer` takes: "bytes", "bpe:DIR".
// INVALID_ARGUMENT naming the known ones, or the errors of LoadTokenizer.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(absl::string_view name);

}  // namespace muster
