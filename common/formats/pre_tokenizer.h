// Splits text into the words that byte-level BPE merges within, by one or more regular expressions. Of each expression
// the matches, and what lies between them, are the pieces that the next one splits (the "Isolated" behaviour of Hugging
// Face's `tokenizers`, which is also GPT-2's findall for an expression that matches everything).
//
// PCRE2 with Unicode properties. Bytes that are not UTF-8 match nothing and so become pieces of their own. Immutable
// after Make: any thread may call.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// GPT-2's encoder.py; Llama-3's and Qwen2's tokenizer.json.
extern const char kGpt2Words[];
extern const char kLlama3Words[];
extern const char kQwen2Words[];

class PreTokenizer {
 public:
  // INVALID_ARGUMENT saying where in the expression it is wrong.
  static absl::StatusOr<PreTokenizer> Make(const std::vector<std::string>& expressions);

  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) = delete;
  ~PreTokenizer();

  // Calls `word` with each piece, in order. INVALID_ARGUMENT when an expression takes too many steps on the text.
  absl::Status Split(absl::string_view text, absl::FunctionRef<void(absl::string_view)> word) const;

  // Whether text may always be cut between a letter and a space: known of the three expressions above, of which no
  // match goes on from a letter into a space.
  bool CutsBeforeSpaces() const { return cuts_before_spaces_; }

 private:
  class Expression;
  explicit PreTokenizer(std::vector<std::unique_ptr<Expression>> expressions, bool cuts_before_spaces);

  std::vector<std::unique_ptr<Expression>> expressions_;
  bool cuts_before_spaces_;
};

}  // namespace muster
