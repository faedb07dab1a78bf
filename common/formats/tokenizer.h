// Turns text into tokens. An implementation is immutable after construction: any thread may call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster {

class Tokenizer {
 public:
  // Takes tokens in runs, in order; an error ends the encoding and is returned by Encode.
  using Sink = absl::FunctionRef<absl::Status(absl::Span<const int32_t>)>;

  virtual ~Tokenizer() = default;

  virtual int64_t vocab() const = 0;            // tokens are 0 .. vocab-1
  virtual int32_t end_of_document() const = 0;  // never produced by Encode

  // The tokens of one document's text, without the end-of-document token.
  virtual absl::Status Encode(absl::string_view text, Sink sink) const = 0;
};

// "bytes" today. INVALID_ARGUMENT naming the known ones.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(absl::string_view name);

}  // namespace muster
