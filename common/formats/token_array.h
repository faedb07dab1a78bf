// Tokens in a mapped file, one after another in one type. Private to common/formats; any thread may read.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/mapped_file.h"

namespace muster {

// How tokens are stored. uint32 is read as int32: what does not fit becomes negative, which no vocabulary has.
enum class TokenStorage { kUInt8, kUInt16, kInt32 };

struct TokenArray {
  const MappedFile& file;
  int64_t first_byte = 0;  // of token 0
  TokenStorage storage = TokenStorage::kInt32;

  int64_t ByteOffset(int64_t token) const;
  void Read(int64_t first, absl::Span<int32_t> out) const;
  absl::Status CheckTokens(int64_t vocab, int64_t first, int64_t count) const;
};

}  // namespace muster
