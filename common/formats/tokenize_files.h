// Makes a training dataset, and if asked a validation dataset, from text files. What `muster data tokenize` calls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/formats/tokenizer.h"

namespace muster {

struct TokenizeOptions {
  // Ends a document wherever it occurs, and is not part of the text, e.g. "<|endoftext|>". Empty: each file is one
  // document.
  std::string document_separator;

  // Where a line of the input is a JSON object (JSONL), the member that is the text of one document. Empty: input is
  // plain text. INVALID_ARGUMENT naming file and line of what is no such object.
  std::string text_field;

  // The same for fine-tuning: each line is a document of a prompt and its completion, of which only the latter, and the
  // end of the document, count in the loss. Both or neither; not with text_field.
  std::string prompt_field;
  std::string completion_field;

  // Share of the input's bytes, the last ones, that becomes the validation set; 0 for none, at most 0.5. The cut moves
  // forward to the next line, so that no word is split; 0.02 to 0.1 is usual. The datasets are then PREFIX-train and
  // PREFIX-val instead of PREFIX.
  double validation_fraction = 0;
};

struct TokenizedDataset {
  std::string prefix;  // of .bin and .idx
  int64_t tokens = 0;  // end-of-document tokens included
  int64_t documents = 0;
};

// Files in the order given; every document that is not empty is followed by the tokenizer's end-of-document token. The
// tokenizer's files are written beside each dataset (tokenizer.h). DATA_LOSS when an input changes its size meanwhile.
// Nothing is left behind after an error: NOT_FOUND or PERMISSION_DENIED for an input, INVALID_ARGUMENT for an empty one
// or a bad option, NOT_FOUND for the output's directory, RESOURCE_EXHAUSTED when the device is full.
absl::StatusOr<std::vector<TokenizedDataset>> TokenizeFiles(const std::vector<std::string>& inputs,
                                                            const Tokenizer& tokenizer,
                                                            const std::string& output_prefix,
                                                            const TokenizeOptions& options);

}  // namespace muster
