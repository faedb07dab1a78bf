// The tokens that a model is trained on, whatever the files they come from: one stream of tokens, cut into documents.
//
// Immutable after it is opened; any thread may read, several at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace muster {

class TokenDataset {
 public:
  virtual ~TokenDataset() = default;

  virtual const std::string& tokens_path() const = 0;  // the file that holds the tokens
  virtual int64_t tokens() const = 0;

  // Tokens [first, first + out.size()). REQUIRES: the range lies within tokens().
  virtual void Read(int64_t first, absl::Span<int32_t> out) const = 0;

  // OUT_OF_RANGE naming file, byte offset, token and vocabulary when a token in [first, first + count) is negative or
  // >= vocab. Reads them once, about 1 GB/s; nothing is read when the token type cannot hold such a token.
  virtual absl::Status CheckTokens(int64_t vocab, int64_t first, int64_t count) const = 0;

  // DATA_LOSS naming file and byte when a file no longer has the size that it had at open: who reads on might be killed
  // by SIGBUS, or train on what is still being written. About a microsecond.
  virtual absl::Status CheckUnchanged() const = 0;

  virtual int64_t documents() const = 0;
  // First token of a document; tokens() for documents(). REQUIRES: 0 <= document <= documents().
  virtual int64_t DocumentBegin(int64_t document) const = 0;

  // Whether the token counts where it is to be predicted: not that of a prompt (docs/data-format.md).
  virtual bool Counted(int64_t token) const = 0;

  // The document that a token belongs to. REQUIRES: 0 <= token < tokens().
  int64_t DocumentOf(int64_t token) const;
};

// By the path that a job names: the prefix of a Megatron dataset, or a token file of llm.c, whose name ends in ".bin".
// The documents of the latter are found by reading it whole, which is left out when nobody asks for them: it then has
// one. The errors of IndexedDataset::Open and LlmcDataset::Open.
absl::StatusOr<std::unique_ptr<TokenDataset>> OpenTokenDataset(const std::string& path, bool documents_wanted);

}  // namespace muster
