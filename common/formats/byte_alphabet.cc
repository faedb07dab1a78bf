#include "common/formats/byte_alphabet.h"

#include <cstdint>

namespace muster {
namespace {

bool IsItself(int byte) { return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174; }

// No code point here is above U+07FF.
std::string Utf8(int code) {
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

std::array<std::string, 256> MakeAlphabet() {
  std::array<std::string, 256> alphabet;
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) alphabet[static_cast<size_t>(byte)] = Utf8(IsItself(byte) ? byte : next++);
  return alphabet;
}

// Byte by code point; -1 for those outside.
std::array<int16_t, 324> MakeInverse() {
  std::array<int16_t, 324> inverse;
  inverse.fill(-1);
  size_t next = 256;
  for (int16_t byte = 0; byte < 256; ++byte) inverse[IsItself(byte) ? static_cast<size_t>(byte) : next++] = byte;
  return inverse;
}

}  // namespace

const std::array<std::string, 256>& ByteAlphabet() {
  static const auto& alphabet = *new std::array<std::string, 256>(MakeAlphabet());
  return alphabet;
}

std::optional<std::string> BytesOfWord(absl::string_view word) {
  static const auto& inverse = *new std::array<int16_t, 324>(MakeInverse());
  std::string bytes;
  for (size_t i = 0; i < word.size(); ++i) {
    size_t code = static_cast<unsigned char>(word[i]);
    if (code >= 0x80) {
      const bool two_bytes = code >= 0xC2 && code < 0xE0 && i + 1 < word.size();
      if (!two_bytes || (static_cast<unsigned char>(word[i + 1]) & 0xC0) != 0x80) return std::nullopt;
      code = (code & 0x1F) << 6 | (static_cast<unsigned char>(word[++i]) & 0x3F);
    }
    if (code >= inverse.size() || inverse[code] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(inverse[code]));
  }
  return bytes;
}

}  // namespace muster
