#include "common/formats/token_array.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

template <typename T>
void Widen(const std::byte* from, absl::Span<int32_t> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    out[i] = value;
  }
}

// Index of the first value in [first, first + count) that is outside [0, vocab), or -1.
template <typename T>
int64_t FindOutside(const std::byte* tokens, int64_t first, int64_t count, int64_t vocab) {
  constexpr int64_t kBlock = 4096;  // found per block, so that the loop over a good block has no exit and vectorises
  const uint32_t limit = static_cast<uint32_t>(std::min<int64_t>(vocab, std::numeric_limits<int32_t>::max()));
  const auto at = [tokens](int64_t i) {
    T value;
    std::memcpy(&value, tokens + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return static_cast<uint32_t>(static_cast<int32_t>(value));  // a negative token becomes a large one
  };
  for (int64_t begin = first; begin < first + count; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, first + count);
    uint32_t largest = 0;
    for (int64_t i = begin; i < end; ++i) largest = std::max(largest, at(i));
    if (largest < limit) continue;
    for (int64_t i = begin; i < end; ++i) {
      if (at(i) >= limit) return i;
    }
  }
  return -1;
}

int64_t BytesOf(TokenStorage storage) {
  if (storage == TokenStorage::kUInt8) return 1;
  return storage == TokenStorage::kUInt16 ? 2 : 4;
}

}  // namespace

int64_t TokenArray::ByteOffset(int64_t token) const { return first_byte + token * BytesOf(storage); }

void TokenArray::Read(int64_t first, absl::Span<int32_t> out) const {
  if (out.empty()) return;
  const std::byte* from = file.bytes().data() + ByteOffset(first);
  switch (storage) {
    case TokenStorage::kUInt8:
      return Widen<uint8_t>(from, out);
    case TokenStorage::kUInt16:
      return Widen<uint16_t>(from, out);
    case TokenStorage::kInt32:
      return Widen<int32_t>(from, out);
  }
}

absl::Status TokenArray::CheckTokens(int64_t vocab, int64_t first, int64_t count) const {
  if (count == 0) return absl::OkStatus();
  const std::byte* tokens = file.bytes().data() + first_byte;
  int64_t found = -1;
  if (storage == TokenStorage::kUInt8) {
    if (vocab < 256) found = FindOutside<uint8_t>(tokens, first, count, vocab);
  } else if (storage == TokenStorage::kUInt16) {
    if (vocab < 65536) found = FindOutside<uint16_t>(tokens, first, count, vocab);
  } else {
    found = FindOutside<int32_t>(tokens, first, count, vocab);
  }
  if (found < 0) return absl::OkStatus();
  int32_t token = 0;
  Read(found, absl::MakeSpan(&token, 1));
  return absl::OutOfRangeError(absl::StrCat(file.path(), ": byte ", ByteOffset(found), ": token ", token,
                                            " is outside the model's vocabulary of ", vocab,
                                            "; set model.vocab to that of the tokenizer"));
}

}  // namespace muster
